"""A member at the console, in a browser without JavaScript: it keeps cookies, and sends forms as pages fill them."""

import re
from typing import Any

import httpx

from tests.contract.calls import address
from tests.service.up import Service

_PASSWORD = "correct horse battery"
_HIDDEN = re.compile(r'name="(csrf_token|seen|form_id)"[^>]* value="([^"]*)"')


class Browser:
    """A member of an organization with the highest role, signed in. Paths are those behind the mode."""

    def __init__(self, service: Service, organization_id: int, *, sandbox: bool) -> None:
        person = {"email": address(), "first_name": "Ann", "last_name": "Admin", "role": "admin"}
        link = service.platform("POST", f"organizations/{organization_id}/members", **person)["link"]
        self._mode = f"{service.url}/console/{'sandbox' if sandbox else 'live'}"
        self._client = httpx.Client(timeout=60, trust_env=False, follow_redirects=True)
        chosen = {"password": _PASSWORD, "again": _PASSWORD}
        self._send(link, self._client.get(link), chosen)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str = "", **query: Any) -> httpx.Response:
        answer = self._client.get(f"{self._mode}{path}", params=query or None)
        assert answer.status_code == 200, _words(answer)
        return answer

    def post(self, path: str, *, of: str | None = None, files: Any = None, **fields: str) -> httpx.Response:
        """Send a form of a page, of the path itself if none is named."""
        return self._send(f"{self._mode}{path}", self.get(path if of is None else of), fields, files)

    def _send(self, url: str, page: httpx.Response, fields: dict[str, str], files: Any = None) -> httpx.Response:
        answer = self._client.post(url, data=dict(_HIDDEN.findall(page.text)) | fields, files=files)
        assert answer.status_code == 200, _words(answer)
        return answer

    def send_list(self, name: str, content: bytes, *, amount: str = "", send_at: Any = None) -> int:
        """Upload a list, settle when it is issued, and confirm it; return the id of its batch."""
        checked = self.post("/send", files={"file": (name, content)}, amount=amount, label="")
        while (further := re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', checked.text)) is not None:
            checked = self._client.get(str(checked.url.join(further[1])))
        path = f"/send/{str(checked.url).rpartition('/')[2]}"
        if send_at is not None:
            later = {"when": "later", "day": f"{send_at:%Y-%m-%d}", "clock": f"{send_at:%H:%M}"}
            self.post(f"{path}/cost", **later)
        outcome = self.post(f"{path}/confirm")
        [batch_id] = set(re.findall(r"/batches/(\d+)", outcome.text))
        return int(batch_id)


def _words(page: httpx.Response) -> str:
    """Return what a page says, for a test that fails."""
    main = page.text.partition("<main")[2].partition("</main>")[0]
    return f"{page.request.url.path} {page.status_code}: {' '.join(re.sub('<[^>]+>', ' ', main).split())}"

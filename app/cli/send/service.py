"""The service as a caller meets it over HTTP: patient with what passes, plain about what does not."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson

from app.cli.send.refusals import NotAService, refusal
from app.errors import PointsError, Refused

# What a gateway or a busy service answers for a while. A 500 too: the idempotency key makes it safe.
_PASSING = frozenset((429, 500, 502, 503, 504))
# What says that this call was not accepted, which an earlier one under the same key may have been all the same.
_SAY_NO = frozenset((301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 415, 429))
_PATIENCE_IN_A_HURRY_S = 10.0
_WAITS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


class Unanswered(PointsError):
    """The service has refused to tell what became of a send that it may have accepted."""


class GaveUp(PointsError):
    """The service could not be reached, or was busy, for longer than the caller's patience."""


@dataclass(frozen=True, kw_only=True)
class Issued:
    """An issued batch; `transactions` are as the interface document gives them, in the order of the recipients."""

    batch_id: int
    transactions: Sequence[Mapping[str, Any]]
    current_balance: int
    replayed: bool


class Service:
    """Calls with one key. `say` is told, in a sentence, why a call waits."""

    def __init__(self, url: str, key: str, *, patience_s: float, say: Callable[[str], None]) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        self._say = say
        self._was_reached = False
        # Whether the last send may have been accepted.
        self._may_be_accepted = False
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json", "User-Agent": "points-send"}
        try:
            # A proxy that the environment names is for the world outside, and not for this machine.
            self._client = httpx.Client(
                base_url=self.url,
                headers=headers,
                timeout=_TIMEOUT,
                trust_env=urlsplit(self.url).hostname not in _THIS_MACHINE,
            )
        except ImportError:  # httpx has SOCKS in a package of its own.
            raise Refused(
                "The environment names a SOCKS proxy, which this command cannot use: unset ALL_PROXY, HTTPS_PROXY or"
                " HTTP_PROXY, whichever it is."
            ) from None
        except (httpx.InvalidURL, UnicodeEncodeError, ValueError):
            raise Refused("The URL cannot be read, or that of a proxy that the environment names.") from None
        if self._client.base_url.scheme not in ("http", "https") or not self._client.base_url.host:
            raise Refused(f"The URL {self.url} must begin with http:// or https:// and name a host.")

    @property
    def is_overheard(self) -> bool:
        """Tell whether the key travels to another machine unencrypted."""
        return self._client.base_url.scheme == "http" and self._client.base_url.host not in _THIS_MACHINE

    def close(self) -> None:
        self._client.close()

    def hurry(self) -> None:
        """Give up soon from now on: the person has asked to stop."""
        self._patience_s = min(self._patience_s, _PATIENCE_IN_A_HURRY_S)

    def organization(self) -> Mapping[str, Any]:
        """Return the organization that the key belongs to, with the balance of the key's mode."""
        return self._data(self._call("GET", "/v1/organization"))

    def verify(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `data` and `additional_data` of the verify result in one."""
        document = _document(self._call("POST", "/v1/points/verify", body), self.url)
        return {**document["data"], **document["additional_data"]}

    def send(self, body: Mapping[str, Any], idempotency_key: str) -> Issued:
        """Issue a batch, or find the one that the key names, and wait until it is committed.

        Raises:
            GaveUp, Unanswered: it may have been accepted.
            PointsError: it was not.
        """
        self._may_be_accepted = False
        try:
            return self._send(body, idempotency_key)
        except GaveUp:
            raise
        except PointsError as error:
            if self._may_be_accepted:
                raise Unanswered(error.sentence) from None
            raise

    def _send(self, body: Mapping[str, Any], idempotency_key: str) -> Issued:
        response = self._call("POST", "/v1/points/send", body, {"Idempotency-Key": idempotency_key})
        document = _document(response, self.url)
        data, batch_id = document["data"], document["additional_data"]["batch_id"]
        if response.status_code == 202:
            data = self._wait(response, batch_id)
        if len(data["transactions"]) != len(body["recipients"]):
            raise NotAService(self.url, response.status_code)
        return Issued(
            batch_id=batch_id,
            transactions=data["transactions"],
            current_balance=data["current_balance"],
            replayed=response.headers.get("Idempotency-Replayed") == "true",
        )

    def _wait(self, accepted: httpx.Response, batch_id: int) -> Mapping[str, Any]:
        """Ask for a queued batch until it is issued."""
        # Where `Location` points as well; made here, because the key is for this service whatever an answer names.
        path = f"/v1/batches/{batch_id}"
        pause_s = _retry_after_s(accepted) or 1.0
        patient_until = time.monotonic() + self._patience_s
        while True:
            data = self._data(self._call("GET", path))
            if data["status"] == "issued":
                return data
            if data["status"] == "refused":
                self._may_be_accepted = False
                raise Refused(f"Batch {batch_id} was refused: the organization may not issue points at present.")
            if time.monotonic() > patient_until:
                raise GaveUp(f"Batch {batch_id} is accepted and still queued; it will be issued once.")
            self._say(f"Batch {batch_id} is queued")
            time.sleep(pause_s)

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Make a call until it is answered for good; raise what the answer says if it is a refusal."""
        content = None if body is None else orjson.dumps(body)
        headers = {**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})}
        failing_since = time.monotonic()
        failures = 0
        while True:
            try:
                response = self._client.request(method, path, content=content, headers=headers)
            except httpx.DecodingError:
                raise NotAService(self.url, None) from None
            except (httpx.TransportError, UnicodeError) as error:  # The second where a host has no name of the DNS.
                if not self._was_reached:
                    raise Refused(f"{self.url} cannot be reached: {error}. Is the --url right?") from None
                self._may_be_accepted = True
                trouble, wait_s = "cannot be reached", None
            else:
                self._was_reached = True
                # Too many calls, and what is refused for itself, are not looked at. Another body under the key was.
                self._may_be_accepted |= response.status_code not in _SAY_NO
                if response.status_code not in _PASSING:
                    if not response.is_success:
                        raise refusal(response, self.url)
                    return response
                trouble, wait_s = f"answers {response.status_code}", _retry_after_s(response)
            wait_s = wait_s or _WAITS_S[min(failures, len(_WAITS_S) - 1)]
            failures += 1
            if time.monotonic() + wait_s > failing_since + self._patience_s:
                raise GaveUp(f"{self.url} {trouble}, and would have to be asked again in {wait_s:.0f} s.")
            self._say(f"The service {trouble}; asking again in {wait_s:.0f} s")
            time.sleep(wait_s)

    def _data(self, response: httpx.Response) -> Mapping[str, Any]:
        data: Mapping[str, Any] = _document(response, self.url)["data"]
        return data


def _document(response: httpx.Response, url: str) -> Mapping[str, Any]:
    """Return the envelope of a success.

    Raises:
        NotAService: it is none.
    """
    try:
        document: Mapping[str, Any] = orjson.loads(response.content)
        if document["success"] is True and isinstance(document["data"], dict):
            return document
    except (orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise NotAService(url, response.status_code)


def _retry_after_s(response: httpx.Response) -> float | None:
    """Return what the answer asks to wait, if it says so in seconds."""
    words = response.headers.get("Retry-After", "")
    return max(0.1, float(words)) if words.isdecimal() else None

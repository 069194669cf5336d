"""The console of the running service: members made by command, signed in over HTTP, and nothing of it in the log."""

import re

import httpx

from tests.service.inside import Service

_PASSWORD = "correct horse battery"


def _token(page: httpx.Response) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', page.text)
    assert found
    return found[1]


def test_a_member_made_by_command_chooses_a_password_and_is_removed(service: Service) -> None:
    organization = service.organization(750, name="Umbrella")
    of = ("--organization", str(organization.id), "--role", "admin")
    made = service.json("members", "create", "mary@umbrella.example", "Mary", "Jackson", *of)
    assert made["link"].startswith(f"{service.url}/console/link/")
    newer = service.json("members", "link", str(made["id"]), "--url", "https://points.example.com/")
    path = newer["link"].removeprefix("https://points.example.com")
    with httpx.Client(base_url=service.url, timeout=60) as browser:
        assert browser.get(made["link"]).status_code == 404
        form = {"csrf_token": _token(browser.get(path)), "password": _PASSWORD, "again": _PASSWORD}
        assert browser.post(path, data=form).headers["Location"] == "/console/live"
        # Several times, so that each of the web processes answers.
        assert all("Umbrella" in browser.get("/console/live").text for _ in range(8))
        [listed] = service.json("members", "list", *of[:2])
        assert service.json("members", "list", str(organization.id)) == [listed]
        assert listed in service.json("members", "list")
        assert (listed["email"], listed["role"], listed["has_password"]) == ("mary@umbrella.example", "admin", True)
        service.command("members", "remove", "Mary@Umbrella.example")
        assert browser.get("/console/live").status_code == 302
    assert service.json("members", "list", *of[:2]) == []
    for told, member in (("There is no member 999", "999"), ("There is no member x@y.zz", "x@y.zz")):
        assert told in service.command("members", "remove", member, status=1).stderr
    log = "\n".join(service.output)
    assert "/console/link/<token>" in log
    assert not [word for word in ("umbrella.example", path.rpartition("/")[2], _PASSWORD) if word in log]

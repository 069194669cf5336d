"""The HTTP client of `points send` and `points reverse`: it retries passing faults; others become sentences."""

import re
import time
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import orjson

from app.cli.send.answers import FaultyBody, Issued, NoAnswer, Transaction, sentences_of
from app.errors import PointsError, Refused
from app.settings import INT64_MAX

# Statuses worth a retry: the batch is queued, or something is busy. A 500 too: the idempotency key makes that safe.
_TEMPORARY = frozenset((202, 429, 500, 502, 503, 504))
# The first: this try was not accepted. The second: no try with this key was, since the key is looked up first.
_NOT_ACCEPTED = frozenset((301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 415, 422, 429))
_NEVER_ACCEPTED = frozenset((403, 422))
_RETRY_WAITS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class Service:
    """Calls to the service with one key; thread-safe. `say` gets a sentence that tells why a call waits."""

    def __init__(self, url: str, key: str, *, patience_s: float, say: Callable[[str], object]) -> None:
        self._url = url.rstrip("/")
        self._patience_s = patience_s
        self._say = say
        self._was_reached = False
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json", "User-Agent": "points-send"}
        try:
            # No proxy of the environment for a service on this machine.
            is_outside = urlsplit(self._url).hostname not in _LOCAL_HOSTS
            timeout = httpx.Timeout(60.0, connect=10.0)
            self._client = httpx.Client(base_url=self._url, headers=headers, timeout=timeout, trust_env=is_outside)
        except (ImportError, httpx.InvalidURL, ValueError):  # ImportError: a SOCKS proxy.
            raise Refused(
                "The URL is not valid, or that of a proxy in the environment is not (a SOCKS proxy cannot be used)."
            ) from None
        if self._client.base_url.scheme not in ("http", "https") or not self._client.base_url.host:
            raise Refused(f"The URL {self._url} must begin with http:// or https:// and name a host.")
        if is_outside and self._client.base_url.scheme == "http":
            say(f"The key travels to {self._url} unencrypted: prefer https://.")

    def close(self) -> None:
        self._client.close()

    def organization(self) -> Mapping[str, Any]:
        """Return the key's organization, with the balance of the key's mode."""
        data: Mapping[str, Any] = self._call("GET", "/v1/organization")[0]["data"]
        return data

    def verify(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `data` and `additional_data` of the verify result, merged."""
        document, _ = self._call("POST", "/v1/points/verify", body)
        return {**document["data"], **document["additional_data"]}

    def amount_max(self) -> int:
        """Return the most points that the service gives one recipient: it says so when asked for more."""
        try:
            self.verify({"recipient": "anyone@example.com", "amount": INT64_MAX})
        except FaultyBody as error:
            if limit := re.search(r"between 1 and (\d+)", error.sentence):
                return int(limit[1])
            raise
        return INT64_MAX

    def send(self, body: Mapping[str, Any], idempotency_key: str) -> Issued:
        """Issue a batch, or find the batch of an earlier call with this key; wait until it is committed.

        Raises:
            NoAnswer: the batch may have been accepted.
            PointsError: the batch was not accepted.
        """
        document, replayed = self._call("POST", "/v1/points/send", body, idempotency_key)
        found = document["data"]["transactions"]
        transactions = list(map(Transaction._make, map(itemgetter(*Transaction._fields), found)))
        if len(transactions) != len(body.get("items") or body["recipients"]):
            raise NoAnswer(self._no_service(201).sentence)
        return Issued(
            batch_id=document["additional_data"]["batch_id"],
            transactions=transactions,
            current_balance=document["data"]["current_balance"],
            replayed=replayed,
        )

    def verify_reverse(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `data` and `additional_data` of the verify result of a reversal, merged."""
        document, _ = self._call("POST", "/v1/points/reverse/verify", body)
        return {**document["data"], **document["additional_data"]}

    def reverse(self, body: Mapping[str, Any], idempotency_key: str) -> Mapping[str, Any]:
        """Take points back, and return the result; wait until it is committed.

        Raises:
            NoAnswer: the reversal may have been accepted.
            PointsError: it was not accepted.
        """
        document, _ = self._call("POST", "/v1/points/reverse", body, idempotency_key)
        data: Mapping[str, Any] = document["data"]
        return data

    def events(self, *, after: int | None, types: str | None, limit: int, wait: int) -> Mapping[str, Any]:
        """Return `data` of the event log: the next events, and up to which sequence it was looked through."""
        asked = {"after": after, "types": types, "limit": limit, "wait": wait}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        data: Mapping[str, Any] = self._call("GET", f"/v1/events?{query}")[0]["data"]
        return data

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, key: str | None = None
    ) -> tuple[Mapping[str, Any], bool]:
        """Return the envelope of a success, and whether it replays an earlier call.

        Raises:
            NoAnswer: only passing faults until the time ran out; or no clear answer to a send that may be accepted.
            PointsError: the call was refused.
        """
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        content = None if body is None else orjson.dumps(body)
        failing_since, failures, is_unsure = time.monotonic(), 0, False
        while True:
            try:
                response = self._client.request(method, path, content=content, headers=headers)
            except httpx.DecodingError:
                raise NoAnswer(self._no_service(None).sentence) from None
            except (httpx.TransportError, UnicodeError) as error:  # UnicodeError: an impossible host name.
                if not self._was_reached:
                    raise Refused(f"{self._url} cannot be reached: {error}. Is the --url right?") from None
                trouble, wait_s, is_unsure = "The service cannot be reached", None, True
            else:
                self._was_reached, status = True, response.status_code
                if status not in _TEMPORARY:
                    break
                trouble = "The batch is queued" if status == 202 else f"The service answers {status}"
                wait_s, is_unsure = _retry_after_s(response), is_unsure or status not in _NOT_ACCEPTED
            wait_s = wait_s or _RETRY_WAITS_S[min(failures, len(_RETRY_WAITS_S) - 1)]
            failures += 1
            if time.monotonic() + wait_s > failing_since + self._patience_s:
                raise NoAnswer(f"{trouble}; the next try would be in {wait_s:.0f} s, later than --patience allows.")
            self._say(f"{trouble}; asking again in {wait_s:.0f} s")
            time.sleep(wait_s)
        try:
            replayed = response.headers.get("Idempotency-Replayed") == "true" and not is_unsure
            return self._document(response), replayed
        except PointsError as error:
            if key is not None and status not in _NEVER_ACCEPTED and (is_unsure or status not in _NOT_ACCEPTED):
                raise NoAnswer(error.sentence) from None
            raise

    def _document(self, response: httpx.Response) -> Mapping[str, Any]:
        """Return the envelope of a success; raise any other answer as an error that says what to do."""
        status, errors = response.status_code, {}
        if response.is_redirect:
            raise Refused(f"{self._url} points to {response.headers.get('Location')}: give that as --url.")
        try:
            document: Mapping[str, Any] = orjson.loads(response.content)
            if document["success"] is True and isinstance(document["data"], dict):
                return document
            errors = dict(document["errors"])
        except (KeyError, TypeError, ValueError):
            pass
        if status == 413 or (status == 400 and errors):
            raise FaultyBody(status, errors)
        if status == 404 and errors.keys() == {"batch"}:
            raise Refused(sentences_of(errors))
        if status == 404 or not errors:
            raise self._no_service(status)
        if status == 401:
            raise Refused(
                f"{self._url} does not know this key, or it was revoked: give another with --key or POINTS_KEY."
            )
        if status == 422:
            raise Refused(
                "An earlier run has sent this part in another form: an amount of its lines, --atomic or the limit of"
                " recipients has changed since. Give the list and the command as they were then, and a difference in a"
                " list of its own; or, to pay everybody once more, name a new campaign with --again NAME."
            )
        raise Refused(sentences_of(errors))

    def _no_service(self, status: int | None) -> Refused:
        answers = "answers" if status is None else f"answers {status}"
        return Refused(f"{self._url} {answers}, but not as a Points Issuing Service does. Is the --url right?")


def _retry_after_s(response: httpx.Response) -> float | None:
    """Return the seconds of `Retry-After`, or None if it has no such number."""
    words = response.headers.get("Retry-After", "")
    return max(0.1, float(words)) if words.isdecimal() else None

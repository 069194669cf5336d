"""What a refused call means for the person at the terminal, in a sentence with what to do."""

import re
from collections.abc import Mapping, Sequence

import httpx
import orjson

from app.errors import PointsError, Refused

_AT_MOST = re.compile(r"at most (\d+)")


class TooManyRecipients(PointsError):
    """The service takes fewer recipients in a batch; `limit` is how many, or None when it did not say."""

    def __init__(self, limit: int | None) -> None:
        super().__init__("The service takes fewer recipients in a batch than even one part has.")
        self.limit = limit


class RefusedRecipients(PointsError):
    """The service found entries at fault that looked right here; by their place in the part."""

    def __init__(self, sentences: Mapping[int, str]) -> None:
        super().__init__("The service refuses some recipients.")
        self.sentences = sentences


class NotAService(PointsError):
    def __init__(self, url: str, status: int | None) -> None:
        answers = "answers" if status is None else f"answers {status}"
        super().__init__(f"{url} {answers}, but not as a Points Issuing Service does. Is the --url right?")


def refusal(response: httpx.Response, url: str) -> PointsError:
    """Return the error that an answer of 300 and above stands for."""
    if response.is_redirect:
        return Refused(f"{url} points to {response.headers.get('Location')}: give that as --url.")
    errors = _errors(response)
    if response.status_code == 413:
        return TooManyRecipients(None)
    if errors is None or response.status_code == 404:
        return NotAService(url, response.status_code)
    if response.status_code == 401:
        return Refused(f"{url} does not know this key, or it was revoked: give another with --key or POINTS_KEY.")
    if response.status_code == 422:
        return Refused(
            "An earlier run has sent this part in another form: --atomic or the limit of recipients has changed since."
            " Give the command as it was then; or, to pay everybody once more, name a new campaign with --again NAME."
        )
    return _fault_of_the_body(errors) if response.status_code == 400 else Refused(_sentences(errors))


def _fault_of_the_body(errors: Mapping[str, Sequence[str]]) -> PointsError:
    for sentence in errors.get("recipients", ()):
        if limit := _AT_MOST.search(sentence):
            return TooManyRecipients(int(limit[1]))
    places = {
        int(field.removeprefix("recipients.")): sentences[0]
        for field, sentences in errors.items()
        if field.startswith("recipients.")
    }
    return RefusedRecipients(places) if places else Refused(_sentences(errors))


def _sentences(errors: Mapping[str, Sequence[str]]) -> str:
    return " ".join(sentence for sentences in errors.values() for sentence in sentences)


def _errors(response: httpx.Response) -> Mapping[str, Sequence[str]] | None:
    """Return the `errors` of the envelope, or None when there is no envelope."""
    try:
        errors = orjson.loads(response.content)["errors"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return errors if isinstance(errors, dict) and errors else None

"""What the service may answer `points send` besides an issued batch: faults of a body, or no clear answer."""

import re
from collections.abc import Mapping, Sequence

from app.errors import PointsError, Refused

_PLACE = re.compile(r"(?:recipients|items)\.(\d+)")


class NoAnswer(PointsError):
    """No clear answer came in time. A send may have been accepted all the same."""

    status = 503


class FaultyBody(Refused):
    """The service found faults in a body; `places` maps a faulty recipient's index to its sentence.

    `is_too_long`: it has too many recipients; `limit` is how many are allowed, if known.
    """

    def __init__(self, status: int, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__(sentences_of(errors))
        about_all = [*errors.get("recipients", ()), *errors.get("items", ())]
        limit = re.search(r"at most (\d+)", " ".join(about_all))
        self.limit = None if limit is None else int(limit[1])
        self.is_too_long = status == 413 or limit is not None
        self.places = {int(place[1]): found[0] for key, found in errors.items() if (place := _PLACE.match(key))}


def sentences_of(errors: Mapping[str, Sequence[str]]) -> str:
    return " ".join(sentence for sentences in errors.values() for sentence in sentences)

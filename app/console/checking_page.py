"""The page of a long list while it is checked. It is written as the check goes on, so it needs no script."""

from collections.abc import Iterator
from itertools import chain

from flask import Response, redirect, render_template, stream_with_context, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response as AnyResponse

from app.console.checking import Steps
from app.errors import PointsError
from app.recipient_files.checking import Progress

# Where the progress is written into the page.
_HERE = Markup("<!-- here -->")


def checked_page(steps: Steps, token: str) -> AnyResponse:
    """Check a list, and go on to the page of its check; while a long one is checked, the answer tells how far that is.

    Raises:
        PointsError: the check came to an end at once, with this.
    """
    check = url_for("console.check", token=token)
    first = next(steps, None)
    if first is None:
        return redirect(check, 303)
    before, after = render_template("console/checking.html", progress_here=_HERE).split(_HERE)
    answer = Response(stream_with_context(_page(chain([first], steps), check, before, after)))
    answer.headers["X-Accel-Buffering"] = "no"  # A proxy passes each step on at once.
    answer.call_on_close(steps.close)
    return answer


def _page(steps: Iterator[Progress], check: str, before: str, after: str) -> Iterator[str]:
    yield before
    try:
        for progress in steps:
            yield _step(progress=progress)
    except PointsError as error:
        yield _step(sentence=error.sentence)
    except Exception:
        yield _step()
        yield after
        raise
    else:
        yield _step(check=check)
    yield after


def _step(*, progress: Progress | None = None, sentence: str | None = None, check: str | None = None) -> str:
    """Write how far the check is, why nothing was kept, or that it is done; without any: that this is not known."""
    return render_template("console/checking_step.html", progress=progress, sentence=sentence, check=check)

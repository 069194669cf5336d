"""The archive: full partitions whose time is over, as Parquet files that are proven like the books (decision 31).

What writes and reads files needs pyarrow, the extra `archive`.
"""

from importlib.util import find_spec

from app.errors import Refused


def require_parquet() -> None:
    """Check that files of the archive can be written and read here.

    Raises:
        Refused: pyarrow is missing.
    """
    if find_spec("pyarrow") is None:
        raise Refused(
            "The archive needs pyarrow, which is not installed. Install the service with its extra `archive`."
        )

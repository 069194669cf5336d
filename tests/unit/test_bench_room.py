"""The bench fills no more rows than the disk has room for."""

import pytest

from benchmarks import disk
from benchmarks.options import NotMeasured


def test_more_rows_than_the_disk_has_room_for_are_refused_before_anything_is_filled() -> None:
    disk.require_room(0)
    with pytest.raises(NotMeasured, match=r"1,000,000,000,000 rows may take 360006 GB, and .* GB free: .*--rows"):
        disk.require_room(10**12)

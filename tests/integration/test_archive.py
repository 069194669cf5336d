"""The archive: ranges whose time is over become files that hold each row, and the books stay proven without them."""

from pathlib import Path

import pytest

from tests.integration import archiving, books
from tests.integration.archiving import DAN, SIZE, archive, archived_rows, finish, rows, write_history

pytestmark = pytest.mark.usefixtures("small_partitions")


def test_a_range_whose_time_is_over_is_in_the_files_row_by_row_and_the_books_balance_without_it(tmp_path: Path) -> None:
    acme, globex = write_history()
    finish()
    assert books.breaches() == []
    assert archive(tmp_path)["waiting"] == [
        {"first_batch_id": 0, "last_batch_id": SIZE - 1, "reason": "points of it are held"}
    ]
    books.make_users(DAN)
    finish()
    was = rows()
    assert len(was) > 10
    done = archive(tmp_path)
    assert done["waiting"] == []
    assert done["archived"][0]["transactions"] == len(was)
    assert rows() == []
    assert archived_rows(tmp_path) == was
    assert books.breaches() == []
    archiving.draw_ids_to(SIZE + 1)
    books.issue_now(acme, [DAN], 1)
    books.issue_now(globex, [DAN], 1)
    assert books.breaches() == []

"""Lists written whole, oldest first, however many rows there are: `points export`, and the console's files.

    export      an export, piece by piece, and its last line; and up to when nothing can be added to a list any more
    sources     the rows of a list between two positions, and where a piece ends
    columns     what is written of a row, as CSV or as a line of JSON

An export holds every row that was there when it began, and none that came later (unless a clock was put back: then some
of these too). For this it takes its end at the start, and then reads pieces, each in a transaction of its own: a
snapshot held for an hour would keep PostgreSQL from cleaning up. What never changes is of that one moment; a state, and
what was taken back, are as read.
"""

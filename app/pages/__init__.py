"""Lists that are read page by page, newest first, at the same cost for every page.

    filters          the filters of a list, a position in it, and a page
    cursors          a position as an opaque text for callers
    batches          the pages of `GET /v1/batches`
    transactions     the pages of `GET /v1/transactions`
    addresses        the rows of one address, for both lists
    statements       the parts of SQL that the lists share

A page is one statement, so it shows one moment. It reads an index from the page's first row, looks at a bounded
number of rows, and returns those that match the filters. The order is by values that never change (a time, an
id), and a cursor names a row, not an offset. So rows written meanwhile never repeat a row or leave one out.
"""

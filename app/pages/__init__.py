"""Lists that are read page by page, newest first, at the same cost on every page.

    filters          what a list is asked for, where a page begins, and what a page is
    cursors          that beginning as callers carry it from page to page
    batches          the pages of `GET /v1/batches`
    transactions     the pages of `GET /v1/transactions`
    addresses        where both find the rows of one address
    statements       the parts that their SQL is made of

Every page is one statement, so it shows one moment. It walks an index from the row where the page
begins, looks at a bounded number of rows, and returns those that the filters let through. The order
is by values that never change (a time, an id), and the next page begins at a row, not after so many:
whatever is written meanwhile, no row comes twice and none that was there is left out.
"""

"""Lists that are read page by page, newest first. Every page costs the same.

    queries          the query of a list, and the parameters that each list knows
    parameters       the values of the parameters
    filters          the filters of a list, a position in it, and a page
    cursors          a position as an opaque text for callers
    lists            the lists of a single table each
    …_pages          the other lists
    action_words     who did what, as a person reads it
    addresses        the rows of an address, for batches and transactions, and of a reference
    far              the rows that a person looks for in the console, further back than a program's page
    statements       the parts of SQL that the lists share

A page is one statement, so all its rows are of the same state. The statement reads an index from the page's first row,
looks at a bounded number of rows, and returns those that match the filters. Rows are sorted by values that never
change (a time, an id), and a cursor names a row, not an offset. So new rows never repeat a row or leave one out.
"""

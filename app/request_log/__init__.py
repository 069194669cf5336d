"""What each key has called: kept by the web process that answered, written in bulk, dropped after 30 days.

keeping    the calls of one web process that are not written yet, and the thread that writes them
rows       the rows in PostgreSQL

`app/web/recording.py` keeps a call as it answers it. `app/pages/lists.py` lists the rows.
"""

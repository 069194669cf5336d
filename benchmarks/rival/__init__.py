"""The rival a user would write in an afternoon: Flask, Celery, the SQLAlchemy ORM, a loop, `AsyncResult.get()`.

Kept honest: it debits under a row lock, writes one transaction per recipient, credits users, commits
once, and runs on the same servers with the same number of processes as ours and a thread for each caller.
Its web processes keep to no core, as none does that nobody has told to. It promises less: no idempotency
key, no answer to a lost message, no sandbox, no check of the addresses.
"""

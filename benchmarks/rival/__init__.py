"""The rival, as a user would write it in an afternoon: Flask, Celery, SQLAlchemy's ORM, a loop, `AsyncResult.get()`.

It is honest: it debits under a row lock, writes one transaction per recipient, credits users and commits once. It
runs on the same servers with as many processes, and a thread for each caller. Its web processes are not pinned to
cores, which is the default. It promises less: no idempotency key, no answer to a lost message, no sandbox, no
check of addresses.
"""

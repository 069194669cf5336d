"""Metrics: what `GET /metrics` shows, and where each figure comes from (docs/decisions/0008, docs/observing.md).

requests     what a web process counts of its requests
processes    the files through which the web processes of one machine add up
shipping     what the workers count (app/tally.py), on its way through Redis
state        how things stand: the queue in PostgreSQL, the notes of sweep and audit in Redis
page         all of it as one text
"""

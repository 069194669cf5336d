"""The calls, as they are written. `_sync` is made from this folder by `make_sync.py`, and never edited."""

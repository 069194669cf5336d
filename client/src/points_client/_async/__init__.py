"""The calls. `make_sync.py` makes `_sync` from this folder, so `_sync` is never edited by hand."""

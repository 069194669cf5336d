"""The calls without `async`: made from `_async` by `make_sync.py`. Edit the files there."""

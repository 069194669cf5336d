"""The calls without `async`: made from `_async` by `generate.py`. Edit the files there."""

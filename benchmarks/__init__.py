"""`make bench` measures sends beside floors and a rival in one run; `__main__` has its options.

`make compare` measures this checkout beside another in one run; `compare` has its options.
"""

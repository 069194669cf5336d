"""`make bench`: what a send costs, beside floors and rivals measured in the same run. `__main__` has the options.

`make compare`: what a change does to that, this checkout beside another in one run; `compare` has its options.
"""

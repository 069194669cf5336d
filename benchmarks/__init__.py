"""`make bench`: what a send costs, beside floors and rivals measured in the same run. `__main__` has the options."""

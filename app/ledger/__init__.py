"""The ledger: the only code that touches a balance.

Its functions take a connection and never commit. Only `drain` commits: each of its rounds is a transaction.
"""

"""The ledger: the only code that touches a balance.

What writes takes a connection and never commits. `drain` alone does: its rounds are transactions.
"""

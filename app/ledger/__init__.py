"""The ledger: the only code that touches a balance. Every function takes a connection and never commits."""

"""For how many days points may be held."""

HOLD_DAYS_MAX = 3_650

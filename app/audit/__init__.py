"""The audit: the rules that the books must satisfy, and the run that checks them."""

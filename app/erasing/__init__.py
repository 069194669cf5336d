"""Erasing a user for good: no copy of the name or of an address is left, and the books stay as they are.

What the person had as a member of an organization is another matter, and stays.
"""

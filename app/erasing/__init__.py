"""Erasing a user for good: no copy of the name or of an address is left, and the books stay as they are.

    erase      the action: the user's row and events first, and then, step by step, what has the addresses
    issued     batches and their transactions
    lists      the lists that members have uploaded

What the person had as a member of an organization is another matter, and stays.
"""

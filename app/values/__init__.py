"""The forms of single values: addresses, names, keys, numbers, times, text."""

"""The forms of single values: addresses, names, keys, times, text."""

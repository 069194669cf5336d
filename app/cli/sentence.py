"""A sentence on standard error: whole for a program that reads it, wrapped between words for a person."""

import shutil
import sys
import textwrap


def write_error(sentence: str) -> None:
    """Write what went wrong, or may have gone wrong, without a traceback."""
    lines = f"points: {sentence}".splitlines()
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines]
    sys.stderr.write("\n".join(lines) + "\n")

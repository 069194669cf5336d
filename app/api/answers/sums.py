"""Sums of points in JSON."""

import orjson

from app.settings import INT64_MAX


def exact_sum(points: int) -> int | orjson.Fragment:
    """Return a sum over many organizations or days as JSON has it: it may have more than 64 bits."""
    return points if abs(points) <= INT64_MAX else orjson.Fragment(str(points))

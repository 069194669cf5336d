"""The fields of requests: how each is read from a mapping, and how it is described to callers."""

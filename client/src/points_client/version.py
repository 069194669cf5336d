"""The version of the service and of its client, which are released together."""

__version__ = "1.0.0"

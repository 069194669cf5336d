"""The HTTP API: its calls, from the request to the answer."""

"""The platform that runs the service: the keys of its own programs."""

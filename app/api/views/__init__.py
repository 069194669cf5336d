"""The endpoints, one a file."""

"""The pages, one a file."""

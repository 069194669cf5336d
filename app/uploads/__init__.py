"""Uploads: the recipient files that members check and send in the console."""

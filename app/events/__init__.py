"""The event log: how events are written, numbered, read and dropped."""

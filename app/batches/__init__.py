"""Batches: accepting a send, the queue, schedules, verify, and reading batches back."""

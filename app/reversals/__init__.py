"""Reversals: accepting one, a preview of what it would take, and reading reversals back."""

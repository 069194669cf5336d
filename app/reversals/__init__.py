"""Reversals: accepting them, a preview of what they would take, and reading them back."""

"""Webhooks: made and changed by their organization, and the deliveries that move each along the event log."""

"""Building answers: the envelope and the payloads, by pure functions."""

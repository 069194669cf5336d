"""The embedded default: PostgreSQL and Valkey from their wheels, and the supervisor behind `points up`."""

"""PostgreSQL: waits with an end, the connections of a process, the one place that commits."""

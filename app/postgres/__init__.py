"""PostgreSQL: time limits, the connections of a process, and the only place that commits."""

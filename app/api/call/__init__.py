"""One HTTP call: its caller, its body and query, its answer, its limits, its log line."""

"""One HTTP call: who makes it, what its body and query say, its answer, its limits, its log line."""

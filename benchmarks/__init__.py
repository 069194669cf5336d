"""What it costs to issue, beside what PostgreSQL alone needs for the same rows, in the same run."""

"""Messages and hints between the processes: the broker, the Celery app, Redis."""

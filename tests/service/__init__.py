"""The service under test: whole, by `points up` (`up`), or as parts that a test starts itself (`deployment`)."""

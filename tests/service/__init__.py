"""The service under test: whole, by `points up` (`up`), one for a whole run (`shared`), or as parts (`deployment`)."""

"""Use cases around a log: one log, one run, the host's own evidence, unknown failures."""

"""Judge a running server: the probes' verdicts → one Validation, and the comparison of two validations."""

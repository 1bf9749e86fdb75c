"""Judgement on a running server: verdicts of probes → one Validation, and what compares two of them."""

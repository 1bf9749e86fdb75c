"""Diagnose failures: from a log, a run, evidence on the host, or all unexplained runs together."""

"""Validate a running server: probe suite, external evaluations, soak, stored baselines."""

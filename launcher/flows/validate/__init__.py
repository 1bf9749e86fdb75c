"""Use cases around a running server: the suite, soaking, external evaluations, baselines."""

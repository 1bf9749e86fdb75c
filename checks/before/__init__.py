"""Checks before a launch: rules, flags and variables are judged against the facts of a host and a release."""

"""Judgement before a launch: rules, flags and variables against the facts of a host and a release."""

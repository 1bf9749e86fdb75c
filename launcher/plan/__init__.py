"""Prepares a launch without side effects: the plan, its shell script, and the facts that rules judge it by."""

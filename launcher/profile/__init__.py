"""Profiles: one file, its parents and overrides, and the schema for editors."""

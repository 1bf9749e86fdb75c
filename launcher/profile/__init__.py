"""Profiles: parse one file, merge its parents and overrides, and describe the format to editors."""

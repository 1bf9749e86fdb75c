"""Attribute an unexplained failure to the settings that lead to the code that failed."""

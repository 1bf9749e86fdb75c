"""Diagnose a log: match the patterns of the knowledge to its incidents, and make a Diagnosis."""

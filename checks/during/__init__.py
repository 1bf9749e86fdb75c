"""Judgement on a log: incidents × patterns → Diagnosis."""

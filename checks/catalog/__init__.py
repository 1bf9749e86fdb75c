"""The knowledge files: the one YAML reader, the condition language, entries and their line patterns."""

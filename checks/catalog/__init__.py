"""Read the knowledge files: the YAML reader, the condition language, entries and their line patterns."""

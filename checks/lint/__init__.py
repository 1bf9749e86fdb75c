"""Lint the knowledge. `python -m checks.lint [FOLDER ..]` prints one line per fault."""

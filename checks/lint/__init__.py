"""The knowledge held to account. `python -m checks.lint [FOLDER ..]` prints one line per fault."""

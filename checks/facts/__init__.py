"""Turn evidence of any origin into flat Facts, and derive the facts that need arithmetic or a table."""

"""Evidence of any origin → flat Facts, and the facts that need arithmetic or a table."""

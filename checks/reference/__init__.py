"""The knowledge as pages for people."""

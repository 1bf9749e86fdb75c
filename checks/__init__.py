"""What we know about SGLang, and how evidence is judged. Pure: no SSH, no HTTP, no clock, no subprocess."""

from pathlib import Path

KNOWLEDGE = Path(__file__).parent / "knowledge"
"""The knowledge files that ship; docs/knowledge.md describes them."""

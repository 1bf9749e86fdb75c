"""The knowledge about SGLang and the checks that apply it. Pure: no SSH, no HTTP, no clock, no subprocess."""

from pathlib import Path

KNOWLEDGE = Path(__file__).parent / "knowledge"
"""The knowledge files that ship; docs/knowledge.md describes them."""

"""Where recorded material lies."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
"""Recorded logs; its README says where each is from."""
DATA = ROOT / "tests" / "data"

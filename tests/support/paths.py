"""Folders of the recorded test data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus"
"""Recorded logs; the README in the folder names the source of each one."""
DATA = ROOT / "tests" / "data"

"""Write the files of a new profiles repository from `templates/`. Existing files are not touched."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from launcher.errors import UsageError

# file in the new repository → template
LAYOUT = {
    "README.md": "README.md",
    "hosts.yaml": "hosts.yaml",
    "gate.yaml": "gate.yaml",
    "profiles/first.yaml": "first.yaml",
    "facts/README.md": "facts-README.md",
    ".github/workflows/gate.yml": "github-gate.yml",
    ".gitlab-ci.yml": "gitlab-ci.yml",
    ".pre-commit-config.yaml": "pre-commit-config.yaml",
}
REQUIREMENTS = "requirements.txt"


def scaffold(folder: Path) -> tuple[str, ...]:
    """Write the repository and return the names of its files.

    Raises UsageError, without writing anything, if one of the files exists or a file is in the place of a folder; and
    if the folder cannot be written to.
    """
    texts = {**{name: _template(source) for name, source in LAYOUT.items()}, REQUIREMENTS: _requirements()}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder", hint="name a new folder: `launch init FOLDER`")
    existing = list(dict.fromkeys(taken for name in texts if (taken := _in_the_way(folder, name))))
    if existing:
        message = f"{folder} already contains {', '.join(existing)}: nothing was written"
        raise UsageError(message, hint="name a new folder, or move these files away")
    try:
        for name, text in texts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as out:
                out.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}", hint="name another folder") from error
    return tuple(texts)


def _in_the_way(folder: Path, name: str) -> str:
    """The path inside the folder that prevents the file from being written; empty if there is none."""
    if (folder / name).exists() or (folder / name).is_symlink():
        return name
    above = (part.as_posix() for part in reversed(Path(name).parents[:-1]))
    return next((part for part in above if os.path.lexists(folder / part) and not (folder / part).is_dir()), "")


def _template(name: str) -> str:
    return (files("launcher.gate") / "templates" / name).read_text("utf-8")


def _requirements() -> str:
    release = ".".join(version("sglang-launcher").split(".")[:2])
    return f"sglang-launcher~={release}.0\n"

"""Write the files of a new profiles repository from `templates/`. Existing files are not touched."""

from __future__ import annotations

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

    Raises UsageError, without writing anything, if one of the files exists.
    """
    texts = {**{name: _template(source) for name, source in LAYOUT.items()}, REQUIREMENTS: _requirements()}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, not a folder", hint="name a new folder: `launch init FOLDER`")
    existing = [name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]
    if existing:
        message = f"{folder} already contains {', '.join(existing)}: nothing was written"
        raise UsageError(message, hint="name a new folder, or move these files away")
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    return tuple(texts)


def _template(name: str) -> str:
    return (files("launcher.gate") / "templates" / name).read_text("utf-8")


def _requirements() -> str:
    release = ".".join(version("sglang-launcher").split(".")[:2])
    return f"sglang-launcher~={release}.0\n"

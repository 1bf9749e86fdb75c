"""The files of a new profiles repository, from `templates/`. Nothing that is there already is touched."""

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
    """Write the repository; the files written. Raises UsageError, and nothing is written, when one is there."""
    wanted = {**{name: _template(source) for name, source in LAYOUT.items()}, REQUIREMENTS: _requirements()}
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder")
    taken = [name for name in wanted if (folder / name).exists() or (folder / name).is_symlink()]
    if taken:
        raise UsageError(
            f"{folder} holds {', '.join(taken)} already: nothing was written", hint="name a new folder, or move them"
        )
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    return tuple(wanted)


def _template(name: str) -> str:
    return (files("launcher.gate") / "templates" / name).read_text("utf-8")


def _requirements() -> str:
    release = ".".join(version("sglang-launcher").split(".")[:2])
    return f"sglang-launcher~={release}.0\n"

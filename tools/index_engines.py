"""Indexes all engine files: `python tools/index_engines.py` writes `checks/knowledge/tables/*.json`.

The tables answer which pins changed in which release, and which release first registered an architecture, without
opening every `checks/knowledge/engines/sglang/<release>.json`. `minimum` (required by the engine's own
`assert_pkg_version` at start-up, `srt/entrypoints/engine.py`) is maintained by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checks.engine.flag_schema import available, load

TABLES = Path(__file__).parents[1] / "checks" / "knowledge" / "tables"
KEPT = (
    "torch", "transformers", "flashinfer-python", "flashinfer-cubin", "sgl-kernel", "sglang-kernel", "sgl-deep-gemm",
    "sgl-deep-ep", "nvidia-cutlass-dsl", "xgrammar", "torchao", "cuda-python", "apache-tvm-ffi",
)  # fmt: skip
PULLED_IN = ("runtime-common", "srt")  # extras that an installation for serving uses (until 0.5.2)


def main() -> None:
    """Rewrite both tables from the engine files."""
    path = TABLES / "requirements.json"
    minimum = json.loads(path.read_text(encoding="utf-8"))["minimum"]
    requires = {release: pins(load(release).requirements) for release in available()}
    sections = [_section("minimum", minimum), _section("requires", requires)]
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="utf-8")
    rows = [f' "{release}": {json.dumps(names)}' for release, names in first_registered().items()]
    (TABLES / "architectures.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def pins(requirements: tuple[str, ...]) -> dict[str, str]:
    """Return name → specifier of the distributions in KEPT; the first requirement of a name counts."""
    specifiers: dict[str, str] = {}
    for item in map(Requirement, requirements):
        marker = str(item.marker or "")
        if "extra" in marker and not any(f'"{extra}"' in marker for extra in PULLED_IN):
            continue
        name = canonicalize_name(item.name)
        if name in KEPT:
            specifiers.setdefault(name, str(item.specifier))
    return specifiers


def first_registered() -> dict[str, list[str]]:
    """Return release → architectures that it is the first to register."""
    registered: set[str] = set()
    first: dict[str, list[str]] = {}
    for release in available():
        names = {name for name in load(release).architectures if not name.startswith("Transformers")}
        if names - registered:
            first[release] = sorted(names - registered)
        registered |= names
    return first


def _section(name: str, rows: dict[str, dict[str, str]]) -> str:
    body = ",\n".join(f'  "{release}": {json.dumps(row)}' for release, row in rows.items())
    return f' "{name}": {{\n{body}\n }}'


if __name__ == "__main__":
    main()

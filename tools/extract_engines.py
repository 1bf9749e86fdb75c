"""Write the knowledge of engine releases out of wheels: `python tools/extract_engines.py [--schema-only] WHEEL…`.

Get the wheels with `pip download --no-deps sglang==VERSION`. Each gives, in `checks/knowledge/engines/sglang/`,
`<version>.json` (arguments, environment, requirements, architectures) and `sites/<version>.zst` (every raise, assert
and warning, which takes a minute a release). At the end `history.json` is made anew from all schemas and
`renames.yaml`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import zstandard
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from checks.engine.flag_history import successors  # noqa: E402
from checks.engine.raise_sites import DICTIONARY_RELEASE  # noqa: E402
from checks.engine.source.program import describe  # noqa: E402
from checks.engine.source.tree import from_wheel  # noqa: E402

TARGET = ROOT / "checks" / "knowledge" / "engines" / "sglang"
# keys left out when they hold the value that the reader puts in their place
DEFAULTS: dict[str, Any] = {
    "type": "str",
    "nargs": None,
    "choices": None,
    "default": None,
    "const": None,
    "required": False,
    "action": "store",
    "hidden": False,
    "deprecated": False,
    "replacement": None,
    "refuses": None,
    "help": "",
}


def main(words: list[str]) -> int:
    """Extract every wheel; the release whose sites serve as dictionary for the others comes first."""
    sites = "--schema-only" not in words
    wheels = [word for word in words if word.endswith(".whl")]
    for wheel in sorted(wheels, key=lambda name: f"-{DICTIONARY_RELEASE}-" not in name):
        document = describe(from_wheel(wheel), sites=sites)
        if document["unresolved"]:
            print(f"{wheel}: not understood: {document['unresolved']}", file=sys.stderr)
        write_schema(document, TARGET)
        if sites:
            write_sites(document["version"], document["sites"], TARGET / "sites")
        print(document["version"], len(document["arguments"]), "arguments", flush=True)
    write_history(TARGET)
    return 0


def write_schema(document: dict[str, Any], target: Path) -> None:
    """One argument a line, so that two releases can be compared with `diff`."""
    head = {key: document[key] for key in ("version", "style", "requirements", "architectures")}
    head["environment"] = _grouped(document["environment"])
    lines = [f"{json.dumps(key)}:{_compact(value)}," for key, value in head.items()]
    arguments = ",\n".join(_compact(_sparse(a)) for a in document["arguments"])
    text = "{\n" + "\n".join(lines) + '\n"arguments":[\n' + arguments + "\n]}\n"
    (target / f"{document['version']}.json").write_text(text, encoding="utf-8")


def write_sites(version: str, rows: list[str], target: Path) -> None:
    """Rows of one release, compressed against those of DICTIONARY_RELEASE: most of the text is the same."""
    plain = "\n".join(rows).encode()
    base = None
    if version != DICTIONARY_RELEASE:
        packed = (target / f"{DICTIONARY_RELEASE}.zst").read_bytes()
        content = zstandard.ZstdDecompressor().decompress(packed)
        base = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(level=19, dict_data=base).compress(plain)
    (target / f"{version}.zst").write_bytes(packed)


def write_history(target: Path) -> None:
    """Which releases have a name, and what the newest one calls the option."""
    releases = sorted((p.stem for p in target.glob("*.json")), key=Version)
    documents = [json.loads((target / f"{r}.json").read_text(encoding="utf-8")) for r in releases]
    flags: dict[str, list[str]] = {}
    variables: dict[str, list[str]] = {}
    for release, document in zip(releases, documents, strict=True):
        for name in (n[2:] for a in document["arguments"] for n in a["flags"]):
            flags.setdefault(name, []).append(release)
        environment = document["environment"]
        declared = [n for names in environment["declared"].values() for n in names]
        for name in {*declared, *environment["mentioned"], *environment["deprecated"]}:
            variables.setdefault(name, []).append(release)
    history = {
        "releases": releases,
        "canonical": dict(sorted(_canonical_names(documents).items())),
        "flags": {name: f"{spans[0]}-{spans[-1]}" for name, spans in sorted(flags.items())},
        "variables": {name: f"{spans[0]}-{spans[-1]}" for name, spans in sorted(variables.items())},
    }
    groups = ",\n".join(f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in history.items())
    (target.parent / "history.json").write_text("{\n" + groups.replace('","', '",\n"') + "\n}\n", encoding="utf-8")


def _canonical_names(documents: list[dict[str, Any]]) -> dict[str, str]:
    """Spelling → canonical name, where they differ: aliases first, newest release first, then pure renames."""
    known: dict[str, str] = {}
    for document in reversed(documents):
        for argument in document["arguments"]:
            names = [name[2:] for name in argument["flags"]]
            derived = argument["dest"].replace("_", "-")
            canonical = next((known[n] for n in names if n in known), derived if derived in names else names[0])
            for name in names:
                known.setdefault(name, canonical)
    renamed = {old: entry.new for old, entry in successors().items() if entry.new}
    newest = {name: _newest(canonical, renamed, known) for name, canonical in known.items()}
    return {name: canonical for name, canonical in newest.items() if name != canonical}


def _newest(name: str, renamed: dict[str, str], known: dict[str, str]) -> str:
    while name in renamed:
        name = known.get(renamed[name], renamed[name])
    return name


def _sparse(argument: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in argument.items() if k != "takes_value" and (k not in DEFAULTS or v != DEFAULTS[k])}


def _grouped(environment: dict[str, Any]) -> dict[str, Any]:
    """Names by type: `EnvBool` → names."""
    groups: dict[str, list[str]] = {}
    for name, kind in sorted(environment["declared"].items()):
        groups.setdefault(kind, []).append(name)
    return {**environment, "declared": groups}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

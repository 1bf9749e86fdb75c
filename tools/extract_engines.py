"""Extracts the knowledge of engine releases from wheels: `python tools/extract_engines.py [--only PART] WHEEL…`.

Get the wheels with `pip download --no-deps sglang==VERSION`. For each wheel it writes, in
`checks/knowledge/engines/sglang/`, `<version>.json` (arguments, environment, requirements, architectures),
`sites/<version>.zst` (every raise, assert and warning) and `features/<version>.zst` (which code each setting leads to).
The latter two take a minute each per release; `--only schema|sites|features` writes one part. Then it rebuilds
`history.json` from all schemas and `renames.yaml`.

`--only functions` needs the wheels of all recorded releases at once, because it writes one table, `functions.zst`: the
releases in which each function changed.
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
from checks.engine.function_history import TABLE  # noqa: E402
from checks.engine.release_rows import DICTIONARY_RELEASE  # noqa: E402
from checks.engine.source.function_digests import function_digests  # noqa: E402
from checks.engine.source.program import describe  # noqa: E402
from checks.engine.source.release_facts import read_version  # noqa: E402
from checks.engine.source.tree import from_wheel  # noqa: E402

TARGET = ROOT / "checks" / "knowledge" / "engines" / "sglang"
# keys that are omitted when they have the value that the reader assumes
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
    """Extract every wheel. The release whose sites are the compression dictionary of all others comes first."""
    only = words[words.index("--only") + 1] if "--only" in words else ""
    wanted = {only} if only else {"schema", "sites", "features"}
    wheels = [word for word in words if word.endswith(".whl")]
    if only == "functions":
        write_functions(wheels, TARGET)
        return 0
    for wheel in sorted(wheels, key=lambda name: f"-{DICTIONARY_RELEASE}-" not in name):
        document = describe(from_wheel(wheel), sites="sites" in wanted, features="features" in wanted)
        if document["unresolved"]:
            print(f"{wheel}: could not be evaluated: {document['unresolved']}", file=sys.stderr)
        if "schema" in wanted:
            write_schema(document, TARGET)
        for kind in ("sites", "features"):
            if kind in wanted:
                write_rows(document["version"], document[kind], TARGET / kind)
        print(document["version"], len(document["arguments"]), "arguments", flush=True)
    write_history(TARGET)
    return 0


def write_schema(document: dict[str, Any], target: Path) -> None:
    """Write the schema with one argument per line, so that `diff` can compare two releases."""
    head = {key: document[key] for key in ("version", "style", "requirements", "architectures")}
    head["environment"] = _grouped(document["environment"])
    lines = [f"{json.dumps(key)}:{_compact(value)}," for key, value in head.items()]
    arguments = ",\n".join(_compact(_sparse(a)) for a in document["arguments"])
    text = "{\n" + "\n".join(lines) + '\n"arguments":[\n' + arguments + "\n]}\n"
    (target / f"{document['version']}.json").write_text(text, encoding="utf-8")


def write_rows(version: str, rows: list[str], target: Path) -> None:
    """Write the rows of a release, compressed with those of DICTIONARY_RELEASE as dictionary: most text is the same."""
    plain = "\n".join(rows).encode()
    base = None
    if version != DICTIONARY_RELEASE:
        packed = (target / f"{DICTIONARY_RELEASE}.zst").read_bytes()
        content = zstandard.ZstdDecompressor().decompress(packed)
        base = zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(level=19, dict_data=base).compress(plain)
    (target / f"{version}.zst").write_bytes(packed)


def write_functions(wheels: list[str], target: Path) -> None:
    """Write the releases in which each function changed, see `checks.engine.function_history`."""
    trees = sorted(((read_version(tree), tree) for tree in map(from_wheel, wheels)), key=lambda item: Version(item[0]))
    last: dict[tuple[str, str], str] = {}
    events: dict[tuple[str, str], list[str]] = {}
    for index, (release, tree) in enumerate(trees):
        digests = function_digests(tree)
        for place in sorted({*digests, *last}):
            if digests.get(place) != last.get(place):
                events.setdefault(place, []).append(str(index) if place in digests else f"-{index}")
        last = digests
        print(release, len(digests), "functions", flush=True)
    files: dict[str, list[str]] = {}
    for (file, function), numbers in sorted(events.items()):
        if len(numbers) > 1:
            files.setdefault(file, []).append(f"{function}:{','.join(numbers)}")
    lines = ["\t".join(release for release, _ in trees)]
    lines += ["\t".join((file, *fields)) for file, fields in files.items()]
    (target / TABLE).write_bytes(zstandard.ZstdCompressor(level=19).compress("\n".join(lines).encode()))


def write_history(target: Path) -> None:
    """Write the releases that have each flag and variable, and the newest canonical name of each flag."""
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
    """Return spelling → canonical name where they differ: aliases first, newest release first, then pure renames."""
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
    """Return the environment with its declared names grouped by type, e.g. `EnvBool` → names."""
    groups: dict[str, list[str]] = {}
    for name, kind in sorted(environment["declared"].items()):
        groups.setdefault(kind, []).append(name)
    return {**environment, "declared": groups}


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

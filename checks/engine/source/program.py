"""Print an engine's schema as one JSON document: `python3 - [--root DIR | --wheel FILE] [--sites]`.

Without an argument it describes the engine that the running Python would import. `remote_program` sends it to a host
as one text, so it needs only the standard library of Python 3.9.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from checks.engine.source.arguments import read_arguments
from checks.engine.source.environment import read_environment
from checks.engine.source.feature_rows import read_features
from checks.engine.source.release_facts import read_architectures, read_requirements, read_version
from checks.engine.source.sites import read_sites, row
from checks.engine.source.tree import SourceError, SourceTree, from_root, from_wheel, installed


def main(argv: list[str] | None = None) -> int:
    """Write the document to stdout. Returns exit code 1, with one line on stderr, if no engine can be read."""
    options = _options(argv)
    try:
        document = describe(_tree(options), sites=options.sites)
    except SourceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    json.dump(document, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")
    return 0


def describe(tree: SourceTree, *, sites: bool = False, features: bool = False) -> dict[str, Any]:
    """Return everything that the source shows about a release; `sites` and `features` take half a minute each."""
    document = {
        "version": read_version(tree),
        "origin": tree.origin,
        **read_arguments(tree),
        "environment": read_environment(tree),
        "requirements": read_requirements(tree),
        "architectures": read_architectures(tree),
    }
    if sites:
        document["sites"] = [row(site) for site in read_sites(tree)]
    if features:
        arguments = document["arguments"]
        choices = (choice for argument in arguments for choice in argument["choices"] or ())
        document["features"] = list(read_features(tree, _attributes(arguments), choices))
    return document


def _attributes(arguments: list[dict[str, Any]]) -> set[str]:
    """Return the attributes that may hold an option: the engine stores `--tensor-parallel-size` as `tp_size`."""
    names = {name.lstrip("-").replace("-", "_") for argument in arguments for name in argument["flags"]}
    return names | {argument["dest"] for argument in arguments}


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", help="a checkout, a site-packages folder, or the package folder itself")
    parser.add_argument("--wheel", help="a wheel file")
    parser.add_argument("--sites", action="store_true", help="also list every raise, assert and warning")
    return parser.parse_args(argv)


def _tree(options: argparse.Namespace) -> SourceTree:
    if options.wheel:
        return from_wheel(options.wheel)
    return from_root(options.root) if options.root else installed()

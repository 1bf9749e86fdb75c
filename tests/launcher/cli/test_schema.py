"""`launch schema`: a JSON Schema that an editor can use, with the flags of one release."""

from __future__ import annotations

import json
from typing import Any

from tests.support.command_line import Cli


def schema(cli: Cli, *words: str) -> dict[str, Any]:
    code, out, err = cli("schema", *words)
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document


def test_the_document_is_a_schema_that_knows_every_part_of_a_profile(cli: Cli) -> None:
    document = schema(cli)
    assert document["$schema"].startswith("https://json-schema.org/")
    assert {"extends", "model", "flags", "env", "expect"} <= set(document["properties"])


def test_the_flags_are_those_of_the_release(cli: Cli) -> None:
    old, new = (json.dumps(schema(cli, "--engine", release)) for release in ("0.5.9", "0.5.23"))
    assert "cuda-graph-max-bs-decode" in new and "cuda-graph-max-bs-decode" not in old


def test_the_newest_release_is_the_default(cli: Cli) -> None:
    newest = cli("engines", "list")[1].split("\n")[-2].split()[0]
    assert schema(cli) == schema(cli, "--engine", newest)

"""`launch explain`: print the reference page of a cause, sign or probe, or list all of them."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from checks.catalog.yaml_reader import did_you_mean
from checks.reference.pages import page, slugs
from launcher.cli.options import Json
from launcher.errors import UsageError


def main(
    slug: Annotated[str, typer.Argument(metavar="ID", help="id from a finding or verdict; default: list all")] = "",
    as_json: Json = False,
) -> int:
    """Print the reference page of a cause, sign or probe."""
    if not slug:
        sys.stdout.write(json.dumps(slugs()) + "\n" if as_json else "".join(f"{name}\n" for name in slugs()))
        return 0
    text = page(slug)
    if text is None:
        hint = did_you_mean(slug, slugs()) or "`launch explain` lists all ids"
        raise UsageError(f"no cause, sign or probe has the id `{slug}`", hint=hint)
    if as_json:
        sys.stdout.write(json.dumps({"id": slug, "page": text}, ensure_ascii=False) + "\n")
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        from launcher.cli import render

        render.out().print(Markdown(text))
    else:
        sys.stdout.write(text)
    return 0

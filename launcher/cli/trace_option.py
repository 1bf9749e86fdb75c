"""`--trace CAUSE`: find the named entry and trace it for a launch. The printed form is in `trace_view`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.errors import UsageError

if TYPE_CHECKING:  # only --trace pays for importing these
    from checks.before.rule_trace import RuleTrace
    from checks.catalog.entries import Entry
    from checks.facts.launch_evidence import Launch
    from launcher.cli.trace_view import Known

Trace: TypeAlias = Annotated[
    str, typer.Option("--trace", metavar="CAUSE", help="also show, condition by condition, why this cause fires or not")
]


def traced_entry(slug: str, *, as_markdown: bool = False) -> Entry | None:
    """Return the entry with that id, or None for an empty slug.

    Raises UsageError for an unknown id, and in combination with Markdown output, which does not show a trace.
    """
    if not slug:
        return None
    if as_markdown:
        raise UsageError("--trace cannot be combined with --markdown", hint="drop --markdown, or use --json")
    from checks.catalog.entries import entry
    from checks.catalog.yaml_reader import did_you_mean
    from checks.reference.pages import slugs

    traced = entry(slug)
    if traced is None:
        known = [name for name in slugs() if entry(name) is not None]
        hint = did_you_mean(slug, known) or "`launch explain` lists all ids; move a draft into checks/knowledge first"
        raise UsageError(f"no cause or sign has the id `{slug}`", hint=hint)
    return traced


def traced_launch(
    item: Entry, launch: Launch, sources: Mapping[str, str], accepted: Mapping[str, str]
) -> tuple[RuleTrace, Known]:
    """Return the trace of a cause for a launch, and the facts that the trace used, with their sources."""
    from checks.before.rule_trace import trace
    from checks.facts.launch_evidence import build, gather
    from checks.facts.origins import worked_out
    from launcher.cli.trace_view import Known

    facts, _ = build(launch)
    base, _ = gather(launch)
    always = {"engine.known": "worked out by checks/facts/launch_evidence.py"}
    return trace(item, facts, accepted), Known(facts=facts, sources={**always, **sources, **worked_out(base)})

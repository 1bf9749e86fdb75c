"""`--trace CAUSE`: the entry that it names, and the trace of a launch. What is shown of it is `trace_view`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from launcher.errors import UsageError

if TYPE_CHECKING:  # only `--trace` pays for what it needs
    from checks.before.rule_trace import RuleTrace
    from checks.catalog.entries import Entry
    from checks.facts.launch_evidence import Launch
    from launcher.cli.trace_view import Known

Trace: TypeAlias = Annotated[
    str, typer.Option("--trace", metavar="CAUSE", help="also show why this cause fired or not, condition by condition")
]


def traced_entry(slug: str, *, as_markdown: bool = False) -> Entry | None:
    """The entry of that id; None where no trace is asked for. Raises UsageError for an unknown id, and beside Markdown,
    which has no place for a trace."""
    if not slug:
        return None
    if as_markdown:
        raise UsageError("--trace is not shown in Markdown", hint="leave out --markdown, or ask for --json")
    from checks.catalog.entries import entry
    from checks.catalog.yaml_reader import did_you_mean
    from checks.reference.pages import slugs

    found = entry(slug)
    if found is None:
        known = [name for name in slugs() if entry(name) is not None]
        raise UsageError(f"no cause or sign is named `{slug}`", hint=did_you_mean(slug, known))
    return found


def traced_launch(
    item: Entry, launch: Launch, sources: Mapping[str, str], accepted: Mapping[str, str]
) -> tuple[RuleTrace, Known]:
    """The trace of a cause for a launch, and the facts it was made with."""
    from checks.before.rule_trace import trace
    from checks.facts.launch_evidence import build, gather
    from checks.facts.origins import worked_out
    from launcher.cli.trace_view import Known

    facts, _ = build(launch)
    base, _ = gather(launch)
    own = {"engine.known": "worked out by checks/facts/launch_evidence.py"}
    return trace(item, facts, accepted), Known(facts=facts, sources={**own, **sources, **worked_out(base)})

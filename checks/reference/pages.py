"""Render an entry of the knowledge as Markdown: title, explanation, releases, evidence, remedies, example."""

from __future__ import annotations

from collections.abc import Iterable

from checks import KNOWLEDGE
from checks.after.probes.registry import probes
from checks.catalog.entries import Entry, entry
from checks.vocabulary import FlagValue, Remedy


def page(slug: str) -> str | None:
    """Return the page of a cause, sign or probe; None when no entry has that name."""
    known = entry(slug)
    if known is not None:
        return entry_page(known)
    probe = next((item for item in probes() if item.id == slug), None)
    if probe is None:
        return None
    clears = f"\nA pass clears these warnings: {', '.join(probe.clears)}.\n" if probe.clears else ""
    proves = f"Suites: {', '.join(probe.suites)}. Proves: {probe.level}."
    return f"# {probe.id}\n\n{probe.title}\n\n{probe.why}\n\n{proves}\n{clears}"


def slugs() -> tuple[str, ...]:
    """Return every name that has a page, sorted."""
    folders = (path.name for kind in ("causes", "signs") for path in (KNOWLEDGE / kind).iterdir() if path.is_dir())
    probes = (path.stem for path in (KNOWLEDGE / "probes").glob("*.yaml"))
    return tuple(sorted({*folders, *probes}))


def entry_page(item: Entry) -> str:
    """Return the page of a cause or sign."""
    parts = [f"# {item.id}", item.title, _facts(item), item.why]
    if item.before:
        rules = (f"**{rule.severity}**{_in(rule.engine.text)}: {rule.message}" for rule in item.before)
        parts += ["## Before the launch", _bullets(rules)]
    if item.during:
        texts = [f"`{text}`{_in(p.engine.text)}" for p in item.during for text in (*p.all, *p.anywhere)]
        if texts:
            parts += ["## In the log", _bullets(texts[:12])]
    if item.remedies:
        parts += ["## Remedies", _bullets(remedy_line(remedy) for remedy in item.remedies)]
    example = next((path for path in sorted(item.folder.glob("match-*.log"))), None)
    if example is not None:
        text = example.read_text(errors="replace")[-1500:].rstrip()
        parts += ["## Example", f"```text\n{text}\n```"]
    if item.cleared_by:
        parts += ["## Cleared by", _bullets(item.cleared_by)]
    if item.references:
        parts += ["## References", _bullets(item.references)]
    return "\n\n".join(part for part in parts if part) + "\n"


def remedy_line(remedy: Remedy) -> str:
    """Return a remedy as one line of Markdown."""
    parts = [f"set `{name}` to `{_value(value)}`" for name, value in remedy.set.items()]
    parts += [f"remove `{name}`" for name in remedy.unset]
    parts += [f"export `{name}={value}`" for name, value in remedy.env.items()]
    parts += [f"unset variable `{name}`" for name in remedy.unset_env]
    parts += [f"run `{remedy.run}`"] if remedy.run else []
    parts += [f"require {' and '.join(f'`{item}`' for item in remedy.requirements)}"] if remedy.require else []
    parts += [f"inspect with `{remedy.inspect}`"] if remedy.inspect else []
    parts += [f"upgrade `{name}` to `{version}`" for name, version in remedy.upgrade.items()]
    text = "; ".join(parts)
    return f"{remedy.text}{' — ' if remedy.text and text else ''}{text}{_in(remedy.engine.text)}"


def _facts(item: Entry) -> str:
    facts = [f"engine {item.engine.text}" if item.engine.text else "every release"]
    facts += [f"phase {item.phase}"] if item.phase else []
    facts += [f"family {item.family}"] if item.family else []
    return f"*{item.role}: {', '.join(facts)}*"


def _in(text: str) -> str:
    return f" ({text})" if text else ""


def _value(value: FlagValue) -> str:
    return " ".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else value


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)

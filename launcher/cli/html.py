"""A validation as one self-contained HTML page without scripts, for print and for dark mode. Pure: text in, text out.

All values are escaped, since the page quotes answers of a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

LEVELS = ("alive", "ready", "correct", "good enough")
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --pass: #1a7f37; --fail: #c62828; --doubt: #9a6700; --dim: #767676; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .35rem .6rem;
border-bottom: 1px solid var(--line); } th { font-weight: 600; white-space: nowrap; }
ol.ladder { display: flex; gap: .5rem; list-style: none; padding: 0; flex-wrap: wrap; }
ol.ladder li { border: 1px solid var(--line); border-radius: .4rem; padding: .3rem .8rem; color: var(--dim); }
ol.ladder li.reached { border-color: var(--pass); color: inherit; } ol.ladder li.reached::before { content: "✓ "; }
.pass { color: var(--pass); } .fail, .error { color: var(--fail); font-weight: 600; }
.inconclusive, .open { color: var(--doubt); font-weight: 600; } .skip { color: var(--dim); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; font-size: 13px; }
summary { cursor: pointer; color: var(--dim); } footer { margin-top: 2rem; color: var(--dim); font-size: 13px; }
"""


def page(validation: Mapping[str, Any], about: Mapping[str, str], baseline: str = "") -> str:
    """Return the page of a validation in the form of `checks.after.validation.as_dict`.

    `about` adds rows to the head, e.g. run and host; `baseline` is the name of the baseline, if there is one.
    """
    title = f"{validation['level']}: {validation.get('model') or 'server'}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{_ladder(str(validation['level']))}\n"
        f'<p class="{escape(str(validation["outcome"]))}">{escape(str(validation["summary"]))}</p>\n'
        f"{_head(validation, about, baseline)}\n<h2>Probes</h2>\n{_probes(validation['verdicts'])}\n"
        f"{_warnings(validation.get('warnings') or ())}"
        "<footer>Skipped probes do not count as passed. Intervals are 95 % confidence intervals.</footer>\n"
        "</body></html>\n"
    )


def _ladder(level: str) -> str:
    reached = LEVELS.index(level) + 1 if level in LEVELS else 0
    steps = (f'<li class="{"reached" if n < reached else "not"}">{name}</li>' for n, name in enumerate(LEVELS))
    return f'<ol class="ladder">{"".join(steps)}</ol>'


def _head(validation: Mapping[str, Any], about: Mapping[str, str], baseline: str) -> str:
    rows = {
        **about,
        "model": validation.get("model"),
        "engine": validation.get("engine"),
        "suite": validation.get("suite"),
        "baseline": baseline,
        "started": validation.get("started"),
        "took": f"{float(validation.get('seconds') or 0):.1f} s",
    }
    return _table(
        (f"<th>{escape(name)}</th>", f"<td>{escape(str(value))}</td>") for name, value in rows.items() if value
    )


def _probes(verdicts: Sequence[Mapping[str, Any]]) -> str:
    return _table(
        (
            f"<th>{escape(str(item['id']))}</th>",
            f'<td class="{escape(str(item["outcome"]))}">{escape(str(item["outcome"]))}</td>',
            f"<td>{escape(str(item['message']))}{_details(item)}</td>",
            f"<td>{float(item.get('seconds') or 0):.1f} s</td>",
        )
        for item in verdicts
    )


def _details(item: Mapping[str, Any]) -> str:
    figures = "\n".join(f"{name} = {value}" for name, value in (item.get("figures") or {}).items())
    evidence = "\n".join(_evidence(part) for part in item.get("evidence") or ())
    text = "\n\n".join(part for part in (figures, evidence) if part)
    return f"<details><summary>figures and evidence</summary><pre>{escape(text)}</pre></details>" if text else ""


def _evidence(part: Mapping[str, Any]) -> str:
    marks = [str(part.get("time") or ""), str(part.get("source") or "")]
    marks += [f"line {part['line']}"] if part.get("line") else []
    return " ".join([*(mark for mark in marks if mark), str(part["text"])])


def _warnings(items: Sequence[Mapping[str, Any]]) -> str:
    if not items:
        return ""
    rows = (
        (
            f"<th>{escape(str(item['id']))}</th>",
            f'<td class="{escape(str(item["state"]))}">{escape(str(item["state"]))}</td>',
            f"<td>{escape(str(item['title']))}{_why(item)}</td>",
        )
        for item in items
    )
    return f"<h2>Warnings in the log</h2>\n{_table(rows)}\n"


def _why(item: Mapping[str, Any]) -> str:
    cleared = ", ".join(map(str, item.get("clears") or ()))
    decided = f"by {item['by']}" if item.get("by") else ""
    text = decided or (f"a pass of {cleared} would clear it" if cleared else "")
    shown = f"<pre>{escape(str(item['evidence']))}</pre>" if item.get("evidence") else ""
    return f"<br>{escape(text)}{shown}"


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table>\n{lines}\n</table>"

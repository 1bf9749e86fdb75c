"""`launch gate`: judge a change of profiles as CI does. Exit code 0: pass, 1: fail, 2: usage error, 5: inconclusive.

The terminal report is in `gate_screen`, the host tier in `gate_trial`, the judging in `launcher.flows.gate`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from checks.catalog.yaml_reader import YamlError
from launcher.cli.exits import Exit
from launcher.cli.options import HostName, HostsFile, Json, check_output

if TYPE_CHECKING:
    from launcher.flows.gate.judge_change import Request
    from launcher.gate.report import Report


def main(
    base: Annotated[str, typer.Option("--base", help="commit or branch to compare with; default: CI's base")] = "",
    tier: Annotated[
        str, typer.Option("--tier", help="static, replay, twin or host; each includes the tiers before it")
    ] = "static",
    host: HostName = "",
    repo: Annotated[Path, typer.Option("--repo", help="folder with gate.yaml")] = Path(),
    everything: Annotated[bool, typer.Option("--all", help="judge all profiles; no finding counts as known")] = False,
    profiles: Annotated[
        list[str] | None, typer.Option("--profile", help="only profiles that match this name pattern; repeatable")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="JUnit XML file to write")] = None,
    sarif: Annotated[Path | None, typer.Option("--sarif", help="SARIF 2.1.0 file to write")] = None,
    codequality: Annotated[Path | None, typer.Option("--codequality", help="GitLab code quality file to write")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Markdown comment to write")] = None,
    bundles: Annotated[Path | None, typer.Option("--bundles", help="folder for bundles of launched runs")] = None,
    hosts_file: HostsFile = None,
    as_json: Json = False,
) -> int:
    """Judge a change of profiles as CI does: static checks, recorded runs, a trial on a host."""
    from launcher.flows.gate.judge_change import Request, check_tier

    outputs = _checked({"junit": junit, "sarif": sarif, "codequality": codequality, "markdown": markdown})
    request = Request(root=repo, base=base, tier=check_tier(tier), everything=everything, only=tuple(profiles or ()))
    try:
        report = _judged(request, host, hosts_file, bundles)
    except YamlError as error:
        _annotate_policy(error)
        raise
    _write(report, outputs)
    _annotate_github(report)
    if as_json:
        from launcher.gate.outputs.document import document

        sys.stdout.write(json.dumps(document(report), ensure_ascii=False) + "\n")
    else:
        from launcher.cli.gate_screen import lines

        sys.stdout.write("".join(f"{line}\n" for line in lines(report)))
    return {"pass": Exit.OK, "fail": Exit.BAD}.get(report.verdict, Exit.INCONCLUSIVE)


def _checked(outputs: dict[str, Path | None]) -> dict[str, Path | None]:
    for name, path in outputs.items():
        check_output(f"--{name}", path, creates_folders=True)
    return outputs


def _judged(request: Request, host: str, hosts_file: Path | None, bundles: Path | None) -> Report:
    from launcher.clock import SystemClock
    from launcher.flows.gate.judge_change import gate
    from launcher.transport.local import LocalTransport

    if request.tier != "host":
        return gate(request, LocalTransport(), SystemClock(), os.environ)
    from launcher.cli.gate_trial import judged_on_host

    return judged_on_host(request, host, hosts_file, bundles)


def _write(report: Report, paths: dict[str, Path | None]) -> None:
    from launcher.gate.outputs import codequality, junit, markdown, sarif

    forms = {
        "junit": junit.junit, "sarif": sarif.sarif, "codequality": codequality.codequality,
        "markdown": markdown.markdown,
    }  # fmt: skip
    for name, path in paths.items():
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(forms[name](report), "utf-8", "surrogateescape")


def _annotate_github(report: Report) -> None:
    """Write annotations and the step summary in GitHub Actions, on standard error: standard output may be JSON."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from launcher.gate.outputs.github import workflow_commands

        sys.stderr.write(workflow_commands(report))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        from launcher.gate.outputs.markdown import markdown

        with Path(summary).open("a", encoding="utf-8", errors="surrogateescape") as out:
            out.write(markdown(report))


def _annotate_policy(error: YamlError) -> None:
    """In GitHub Actions, annotate the line of gate.yaml that cannot be read."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from launcher.gate.outputs.github import annotation
    from launcher.gate.report import Place

    path, line, column = (*error.where.rsplit(":", 2), "1", "1")[:3]
    if line.isdigit() and column.isdigit():
        place = Place(path=path, line=int(line), column=int(column))
        sys.stderr.write(annotation("error", place, "gate policy", error.message) + "\n")

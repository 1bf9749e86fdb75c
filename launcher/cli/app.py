"""The table of commands, written out, and the one error handler. A command's module is imported when it is called."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

# name → (module under launcher.cli, one line for --help)
LAUNCH = {
    "profile": ("profile", "Check, start, watch and validate a profile on a host."),
    "check": ("check", "Check a profile against a host's engine, GPUs and model, or offline; start nothing."),
    "list": ("list_", "List the profiles that can be launched."),
    "show": ("show", "Show a profile, with the file and line each value came from."),
    "runs": ("runs", "List runs, newest first."),
    "run": ("run", "Show one run: plan, events, diagnosis, verdicts."),
    "logs": ("logs", "Print a run's log; -f follows it."),
    "attach": ("attach", "Follow a run again: after a lost connection, a closed laptop, a killed launcher."),
    "stop": ("stop", "Stop a run, or all runs of a host, and prove that nothing is left."),
    "validate": ("validate", "Probe a running server: is it correct and fast enough?"),
    "baseline": ("baseline", "Keep a run's validation under a name, show what is kept, compare with it."),
    "gate": ("gate", "Judge a change of profiles as CI does: what it affects, what stands in its way."),
    "replay": ("replay", "Judge recorded runs again, offline: is a verdict another one today?"),
    "bundle": ("bundle", "Pack a run into one archive without secrets."),
    "init": ("init", "Write a new profiles repository: hosts, first profile, gate policy, CI."),
    "facts": ("facts", "Capture a host's facts as JSON."),
    "engines": ("engines", "What is known about engine releases: flags, changes between them."),
    "explain": ("explain", "The page of a rule, signature or probe."),
    "schema": ("schema", "JSON Schema of profiles, for editors."),
}
DIAGNOSE = {
    "last-crash": ("diagnose_run:last_crash", "Explain the last run that did not end well."),
    "run": ("diagnose_run:run", "Explain a run."),
    "log": ("diagnose:log", "Explain a log file (plain, .gz, .xz, .zst), or standard input with `-`."),
    "unknowns": ("diagnose_unknowns", "List failures without a known cause, grouped over all runs."),
    "scaffold": ("diagnose_scaffold", "Turn an unknown failure into the draft of a cause, with its log."),
}
INTERRUPTED = 130
_HELP = {
    "launch": "Launch SGLang from a profile and prove it correct before calling it healthy.",
    "diagnose": "Name the first cause of a failed SGLang launch, and the remedy.",
}


def launch() -> None:
    """Console script `launch`."""
    _main("launch", LAUNCH)


def diagnose() -> None:
    """Console script `diagnose`."""
    _main("diagnose", DIAGNOSE)


def _main(program: str, table: dict[str, tuple[str, str]]) -> None:
    # what is loaded at the start lives to the end: looking for garbage among it took a tenth of a short command's time
    gc.set_threshold(50_000)
    sys.exit(run(program, table, sys.argv[1:]))


def run(program: str, table: dict[str, tuple[str, str]], words: Sequence[str]) -> int:
    """Run one command line; the exit code. Every error ends here."""
    if list(words) == ["--version"]:
        from launcher.cli.fault import release

        sys.stdout.write(f"{program} (sglang-launcher) {release()}\n")
        return 0
    if not words or words[0] in ("--help", "-h"):
        sys.stdout.write(_overview(program, table))
        return 0
    try:
        return _dispatch(program, table, words)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from launcher.cli.fault import report

        return report(error, program, words)


def _overview(program: str, table: dict[str, tuple[str, str]]) -> str:
    width = max(map(len, table))
    rows = "".join(f"  {name:<{width}}  {text}\n" for name, (_, text) in table.items())
    return (
        f"usage: {program} COMMAND [ARGS]\n\n{_HELP[program]}\n\n{rows}\n"
        f"`{program} COMMAND --help` says more. `{program} --version` names this release.\n"
    )


def _dispatch(program: str, table: dict[str, tuple[str, str]], words: Sequence[str]) -> int:
    name = words[0]
    if name not in table:
        from checks.catalog.yaml_reader import did_you_mean
        from launcher.errors import UsageError

        raise UsageError(f"no command `{name}`", hint=did_you_mean(name, table))
    module, _, function = table[name][0].partition(":")
    import typer
    from typer.main import get_command

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(getattr(import_module(f"launcher.cli.{module}"), function or "main"))
    command: Any = get_command(app)
    return _exit_code(command, f"{program} {name}", list(words[1:]))


def _exit_code(command: Any, prog_name: str, words: list[str]) -> int:
    import typer

    # typer brings its own copy of click from 0.28 on: the exceptions are found by their place in the family
    shown: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = command.main(args=words, prog_name=prog_name, standalone_mode=False)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort as aborted:
        raise KeyboardInterrupt from aborted
    except shown as error:
        error.show()
        return 2
    if code == INTERRUPTED:  # what typer makes of Ctrl-C
        raise KeyboardInterrupt
    return int(code or 0)

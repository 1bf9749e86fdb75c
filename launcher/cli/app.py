"""The tables of commands of `launch` and `diagnose`, and the one error handler.

A command's module is imported only when the command is called. What each command does is in its module.
"""

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
    "check": ("check", "Check a profile against the engine, GPUs and model of a host, or offline; start nothing."),
    "list": ("list_", "List the profiles that can be launched."),
    "show": ("show", "Show a profile after `extends`; --resolved adds the file and line of each value."),
    "runs": ("runs", "List runs, newest first."),
    "run": ("run", "Show one run: plan, events, diagnosis and verdicts."),
    "logs": ("logs", "Print the log of a run; -f follows it."),
    "attach": ("attach", "Follow a run again, e.g. after a lost connection or a killed launcher."),
    "stop": ("stop", "Stop a run or all runs on a host, and verify that no process, port or GPU memory is left."),
    "validate": ("validate", "Probe a running server and judge whether it is correct and fast enough."),
    "baseline": ("baseline", "Save the validation of a run as a baseline, show baselines, compare a run with one."),
    "gate": ("gate", "Judge a change of profiles as CI does: which profiles it affects and what blocks it."),
    "replay": ("replay", "Judge recorded runs again, offline, and report verdicts that changed."),
    "bundle": ("bundle", "Pack a run into one archive without secrets."),
    "init": ("init", "Create a profiles repository: hosts, a first profile, gate policy, CI."),
    "facts": ("facts", "Capture the facts of a host as JSON."),
    "upgrade": ("upgrade", "Foresee another SGLang release for a profile: what changes, and the edits as a diff."),
    "engines": ("engines", "Show the server args of each SGLang release, and what changes between two releases."),
    "explain": ("explain", "Print the reference page of a cause, sign or probe."),
    "schema": ("schema", "Print the JSON Schema of profiles, for editors."),
}
DIAGNOSE = {
    "last-crash": ("diagnose_run:last_crash", "Explain the most recent run that failed."),
    "run": ("diagnose_run:run", "Explain a run."),
    "log": ("diagnose:log", "Explain a log file (plain, .gz, .xz, .zst), or standard input with `-`."),
    "unknowns": ("diagnose_unknowns", "List failures without a known cause, grouped by fingerprint over all runs."),
    "scaffold": ("diagnose_scaffold", "Draft the knowledge entry of an unknown failure, with its log."),
}
INTERRUPTED = 130
_HELP = {
    "launch": "Launch SGLang from a profile and prove it correct before calling it healthy.",
    "diagnose": "Name the root cause of a failed SGLang launch, and its remedy.",
}


def launch() -> None:
    """Run the console script `launch`."""
    _main("launch", LAUNCH)


def diagnose() -> None:
    """Run the console script `diagnose`."""
    _main("diagnose", DIAGNOSE)


def _main(program: str, table: dict[str, tuple[str, str]]) -> None:
    # imported modules live until the exit; collecting garbage among them took a tenth of a short command's time
    gc.set_threshold(50_000)
    sys.exit(run(program, table, sys.argv[1:]))


def run(program: str, table: dict[str, tuple[str, str]], words: Sequence[str]) -> int:
    """Run one command line and return the exit code. Every error is reported here; none is raised."""
    try:
        code = _answer(program, table, words)
        sys.stdout.flush()  # Python would do so after this function, where a lost reader is an error
        return code
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from launcher.cli.fault import report

        return report(error, program, words)


def _answer(program: str, table: dict[str, tuple[str, str]], words: Sequence[str]) -> int:
    if list(words) == ["--version"]:
        from launcher.cli.fault import release

        sys.stdout.write(f"{program} (sglang-launcher) {release()}\n")
        return 0
    if not words or words[0] in ("--help", "-h"):
        sys.stdout.write(_overview(program, table))
        return 0
    return _dispatch(program, table, words)


def _overview(program: str, table: dict[str, tuple[str, str]]) -> str:
    width = max(map(len, table))
    rows = "".join(f"  {name:<{width}}  {text}\n" for name, (_, text) in table.items())
    return (
        f"usage: {program} COMMAND [ARGS]\n\n{_HELP[program]}\n\n{rows}\n"
        f"Run `{program} COMMAND --help` for the options of a command, `{program} --version` for the release.\n"
    )


def _dispatch(program: str, table: dict[str, tuple[str, str]], words: Sequence[str]) -> int:
    name = words[0]
    if name not in table:
        from checks.catalog.yaml_reader import did_you_mean
        from launcher.errors import UsageError

        raise UsageError(f"unknown command `{program} {name}`", hint=did_you_mean(name, table))
    module, _, function = table[name][0].partition(":")
    import typer
    from typer.main import get_command

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(getattr(import_module(f"launcher.cli.{module}"), function or "main"))
    command: Any = get_command(app)
    return _exit_code(command, f"{program} {name}", list(words[1:]))


def _exit_code(command: Any, prog_name: str, words: list[str]) -> int:
    import typer

    # typer bundles its own copy of click from 0.28 on, so its ClickException is looked up among the base classes
    click_exception: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code = command.main(args=words, prog_name=prog_name, standalone_mode=False)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort as aborted:
        raise KeyboardInterrupt from aborted
    except SystemExit as ended:  # typer's answer to a closed standard output
        raise ended.__context__ or ended from None
    except click_exception as error:
        error.show()
        return 2
    if code == INTERRUPTED:  # typer's exit code for Ctrl-C
        raise KeyboardInterrupt
    return int(code or 0)

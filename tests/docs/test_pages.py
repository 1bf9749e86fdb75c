"""What documentation says in blocks and code spans is true: commands run, outputs come, spans name what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs import execution
from tests.docs.pages import PAGES, Step, blocks, reference, spans, steps
from tests.docs.recipes import PAGE
from tests.docs.stages import (
    CRASHED,
    EXITS,
    NAMES,
    PARSED,
    STAGES,
    UNKNOWN,
    Stage,
    addresses,
    crashed_before,
    validated_before,
)
from tests.docs.world import world
from tests.support import sshd
from tests.support.paths import ROOT


def recipe(step: Step) -> bool:
    """Whether `test_recipes` runs it."""
    return step.page == PAGE and step.command.startswith((".venv/", "mv "))


STEPS = [step for page in PAGES for block in blocks(page) if block.is_shell for step in steps(block)]
RUN = [step for step in STEPS if step.command not in PARSED and not recipe(step)]
OPTION = re.compile(r"--[a-z][a-z-]+")


SCENES = {page: STAGES.get(page, Stage()) for page in PAGES if any(step.page == page for step in RUN)}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.sshd] if scene.hosts else []) for page, scene in SCENES.items()]
)
def test_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    stage = SCENES[page]
    if stage.hosts and (reason := sshd.missing()):
        pytest.skip(reason)
    with world(tmp_path / "world", hosts=stage.hosts, servers=stage.servers) as made:
        names = NAMES | stage.names(made)
        stage.prepare(made)
        wrong = [text for step in RUN if step.page == page for text in fault(step, names, made.fresh_port, made.folder)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.sshd
def test_commands_of_the_reference_do_what_they_say(tmp_path: Path) -> None:
    """Each command of the README's table that is complete there; the others exist, and all have their options."""
    if reason := sshd.missing():
        pytest.skip(reason)
    wrong, complete = list[str](), 0
    with world(tmp_path / "world", hosts=True, servers=("URL",)) as made:
        validated_before(made)
        crashed_before(made)
        launched = NAMES | {"ID|URL": addresses(made)["URL"]}
        failed = NAMES | {"ID": CRASHED, "RUN|LOG": UNKNOWN}
        for commands, options in reference("README.md"):
            names = failed if commands[0].command.startswith("diagnose") else launched
            first = execution.words_of(commands[0].command, names)
            execution.parse([*first[:2], *options], complete=False)
            for step in commands:
                words = execution.words_of(step.command, names)
                execution.parse(words, complete=False)
                if is_complete(words) and step.command not in PARSED:
                    complete += 1
                    wrong += fault(step, names, made.fresh_port, made.folder)
    assert not wrong, "\n\n".join(wrong)
    assert complete > 20


def is_complete(words: list[str]) -> bool:
    try:
        execution.parse(words)
    except execution.NotParsed:
        return False
    return True


def fault(step: Step, names: dict[str, str], renew: Callable[[], None], folder: Path) -> list[str]:
    """What is wrong with one command."""
    renew()
    ran = execution.run(execution.words_of(step.command, names))
    allowed = EXITS.get(step.command, ((0,), ""))[0]
    told = f"{step.where}: $ {step.command}\n{ran.out}{ran.err}exit {ran.code}"
    if ran.code not in allowed:
        return [f"{told}, expected {' or '.join(map(str, allowed))}"]
    if step.output is not None and not execution.agrees(step.output, ran.out, folder):
        return [f"{told}; the page shows:\n" + "\n".join(step.output)]
    return []


def test_every_command_is_run_or_has_a_reason() -> None:
    """Tables of stages and exceptions (`stages.py`) hold nothing that no page says."""
    assert set(STAGES) <= set(SCENES)
    assert set(PARSED) <= {step.command for step in STEPS}
    assert set(EXITS) <= {step.command for step in RUN} | {
        item.command for row, _ in reference("README.md") for item in row
    }


@pytest.mark.parametrize("command", sorted(PARSED))
def test_what_is_not_run_exists(command: str) -> None:
    program, *rest = execution.words_of(command, NAMES)
    match program:
        case "launch" | "diagnose":
            execution.parse([program, *rest])
        case "make":
            makefile = (ROOT / "Makefile").read_text()
            assert all(re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE) for target in rest)
        case "python3":
            shown = subprocess.run(
                [sys.executable, rest[0], "--help"], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout
            assert [word for word in OPTION.findall(command) if word not in shown] == []
        case _:
            assert PARSED[command]


@pytest.mark.parametrize("page", PAGES)
def test_code_spans_name_commands_and_options_that_exist(page: str) -> None:
    wrong = []
    for line, span in spans(page):
        words = span.replace("\\|", "|").split()
        if words[0] not in execution.TABLES or words[1:2] == ["…"]:
            continue
        try:
            execution.parse(words, complete=False)
        except execution.NotParsed as error:
            wrong.append(f"{page}:{line}: `{span}`: {error}")
    assert wrong == []

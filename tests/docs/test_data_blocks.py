"""Blocks of data in the documentation are read by whoever reads such files in earnest, and lists in prose are complete.

A block is recognised by its keys; one that nobody reads fails. Tables of keys are in `test_*_keys`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from checks import KNOWLEDGE
from checks.after.probes import registry
from checks.catalog import entries
from checks.catalog.yaml_reader import Node, parse
from checks.engine.flag_schema import load
from checks.lint.entry_faults import behaves_as_stated, compiles, names_known_flags
from launcher.gate import policy
from launcher.plan.launch_plan import Target, make_plan
from launcher.profile.file import KEYS
from launcher.profile.resolve import resolve, search_path
from launcher.transport.hosts_file import HostsFile
from tests.docs import execution
from tests.docs.pages import PAGES, Block, blocks
from tests.docs.recipes import PAGE as RECIPES
from tests.support.paths import ROOT

BLOCKS = [block for page in PAGES if page != RECIPES for block in blocks(page) if not block.is_shell]


def profile(block: Block, folder: Path) -> None:
    (folder / "page.yaml").write_text(block.text)
    read = resolve("page", (folder, *search_path()))
    _ = read.expectations
    make_plan(read, load(), Target(host="h", engine=load().version, python="python3", work_dir="/w"))


def hosts(block: Block, folder: Path) -> None:
    (folder / "hosts.yaml").write_text(block.text)
    inventory = HostsFile(folder / "hosts.yaml")
    assert [name for name in inventory.names if inventory.entry(name) is None] == []


def gate(block: Block, folder: Path) -> None:
    (folder / "gate.yaml").write_text(block.text)
    policy.load(folder / "gate.yaml")


def cause(block: Block, folder: Path) -> None:
    place = folder / "causes" / "from-a-page"
    place.mkdir(parents=True)
    (place / "cause.yaml").write_text(block.text)
    entry = entries.load(place)
    assert [*names_known_flags(entry), *compiles(entry), *behaves_as_stated(entry)] == []
    missing = [text for text in entry.references if text[0].isdigit() and text.split(":")[0] not in known_releases()]
    assert missing == []


def probe(block: Block, folder: Path) -> None:
    (folder / "from-a-page.yaml").write_text(block.text)
    registry.load(folder / "from-a-page.yaml")


def github(block: Block, folder: Path) -> None:
    text = block.text
    assert schema_fault("vendor.github-workflows", folder, f"name: n\n{text}" if "name:" not in text else text) == ""
    inputs = set(action("inputs"))
    for job in parse(text, block.where).need("jobs").plain().values():
        for step in job["steps"]:
            if "OWNER/sglang-launcher@" in step.get("uses", ""):
                assert set(step.get("with", {})) <= inputs


def gitlab(block: Block, folder: Path) -> None:
    assert schema_fault("vendor.gitlab-ci", folder, block.text) == ""
    document = parse(block.text, block.where).plain()
    assert set(document["variables"]) <= set(gitlab_variables())
    [included] = [item["local"] for item in document["include"]]
    assert (ROOT / "templates" / Path(included).name).exists()


def pre_commit(block: Block, folder: Path) -> None:
    [shipped] = parse((ROOT / ".pre-commit-hooks.yaml").read_text(), "hooks").plain()
    for repository in parse(block.text, block.where).plain()["repos"]:
        for hook in repository["hooks"]:
            assert hook["id"] == shipped["id"]
            re.compile(hook.get("files", ""))
            if "entry" in hook:
                execution.parse(shlex.split(hook["entry"]))


READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Block, Path], None]], ...] = (
    (lambda keys: "repos" in keys, pre_commit),
    (lambda keys: "jobs" in keys, github),
    (lambda keys: "include" in keys, gitlab),
    (lambda keys: "hosts" in keys and "profiles" not in keys, hosts),
    (lambda keys: {"suites", "level"} <= set(keys), probe),
    (lambda keys: {"title", "family"} <= set(keys), cause),
    (lambda keys: set(keys) <= set(KEYS), profile),
    (lambda keys: set(keys) <= set(policy.KEYS), gate),
)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language == "yaml"], ids=lambda block: block.where
)
def test_a_block_of_yaml_is_read_by_its_reader(block: Block, tmp_path: Path) -> None:
    keys: Node = parse(block.text, block.where)
    reader = next((read for test, read in READERS if test(keys.mapping())), None)
    assert reader is not None, f"{block.where}: nobody reads a file with the keys {', '.join(keys.mapping())}"
    reader(block, tmp_path)


def test_every_block_is_of_a_kind_that_is_read() -> None:
    """Code belongs into a recipe, where it is followed and run."""
    others = {block.where for block in BLOCKS if block.language != "yaml"}
    assert others == {block.where for block in BLOCKS if block.lines[0].startswith("causes/")}


def test_a_listing_of_a_cause_names_its_files() -> None:
    [listing] = [block for block in BLOCKS if block.lines[0].startswith("causes/")]
    folder = KNOWLEDGE / listing.lines[0]
    named = [line.split()[0] for line in listing.lines[1:]]
    assert [name for name in named if not (folder / name).exists()] == []


# --- lists in prose that a reader takes for complete


def words_after(page: str, start: str) -> set[str]:
    """Code spans from a phrase to the end of its sentence."""
    text = " ".join((ROOT / page).read_text("utf-8").split())
    assert start in text, f"{page} has no `{start}`"
    sentence = re.split(r"\.(?:\s|$)", text.partition(start)[2], maxsplit=1)[0]
    return set(re.findall(r"`([\w-]+)`", sentence))


def test_inputs_and_outputs_of_the_action_are_listed() -> None:
    assert words_after("docs/ci-github.md", "Outputs:") == set(action("outputs"))
    assert words_after("docs/ci-github.md", "Inputs:") == set(action("inputs"))


def test_variables_of_the_gitlab_template_are_listed() -> None:
    table = set(re.findall(r"^\| `(LAUNCH_\w+)`", (ROOT / "docs/ci-gitlab.md").read_text(), re.MULTILINE))
    assert table == {name for name in gitlab_variables() if name.startswith("LAUNCH_")}


def action(section: str) -> Iterator[str]:
    return iter(parse((ROOT / "action.yml").read_text(), "action.yml").need(section).mapping())


def gitlab_variables() -> list[str]:
    template = parse((ROOT / "templates/launch-gate.gitlab-ci.yml").read_text(), "template")
    return list(template.need(".launch-gate").need("variables").mapping())


def known_releases() -> set[str]:
    from checks.engine.flag_schema import available

    return set(available())


def schema_fault(schema: str, folder: Path, text: str) -> str:
    """What the linter of such files says; empty when the file is right."""
    (folder / "ci.yml").write_text(text)
    more = ["--data-transform", "gitlab-ci"] if "gitlab" in schema else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *more, str(folder / "ci.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr

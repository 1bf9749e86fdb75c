"""Each key of a profile is documented, and setting it changes what is planned, checked, shown or accepted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from checks.engine.flag_schema import load
from checks.vocabulary import Finding, Severity
from launcher.cli import show
from launcher.errors import LauncherError
from launcher.flows.launch.prepare import range_finding, settle
from launcher.gate.judge import Case, judge
from launcher.gate.policy import Policy
from launcher.gate.rulebook import Rulebook
from launcher.gate.side import Side
from launcher.gate.static import Checked, GroupedFinding, check_profile
from launcher.knowledge_cache import rules
from launcher.plan.launch_plan import Target, make_plan
from launcher.profile.file import ACCEPT_KEYS, ENV_KEYS, HARDWARE_KEYS, KEYS, MODEL_KEYS, SETTING_KEYS, Profile
from launcher.profile.resolve import for_engine, resolve
from tests.docs.key_tables import documented

TODAY = date(2026, 12, 1)
RELEASE = "0.5.20"
ERROR = Finding(id="some-finding", severity=Severity.ERROR, message="m", subject="s")

# --- what can be observed of a profile


def plan(profile: Profile) -> Any:
    """The command line and environment of a launch, or why there is none."""
    target = Target(host="h", engine=RELEASE, python="python3", work_dir="/w")
    try:
        made = make_plan(for_engine(profile, RELEASE), load(RELEASE), target)
    except LauncherError as error:
        return str(error)
    return made.argv, dict(made.env), made.secret_env


def shown(profile: Profile) -> list[str]:
    """`launch show --resolved`, without the places, which differ in each file."""
    return [line.replace(profile.path, "") for line in show.lines(profile, resolved=True)]


def findings(profile: Profile) -> set[tuple[str, str]]:
    """What checks without a host find."""
    checked = check_profile(profile, [], Policy(), Rulebook(rules()))
    return {(row.finding.id, row.finding.message) for row in checked.findings}


def in_range(profile: Profile) -> list[Finding]:
    """What a check says of the release."""
    return range_finding(profile, load(RELEASE))


def settled(profile: Profile) -> Any:
    """An error finding, standing or accepted."""
    left, accepted = settle([ERROR], profile.accept, TODAY)
    return left, [item.reason for _, item in accepted]


def owned(profile: Profile) -> list[str]:
    """What a gate that wants an owner makes of an acceptance."""
    now = Checked(findings=(GroupedFinding(finding=ERROR, targets=("t",)),), targets=("t",))
    policy = Policy(owner=(ERROR.id,))
    return [str(item.status) for item in judge(Case(profile=profile, now=now), policy, Side(Path("/-"), policy), TODAY)]


class Row(Struct, frozen=True):
    """A profile without a key, with it, and what differs."""

    without: str
    with_key: str
    view: Callable[[Profile], Any]


SMALL = "model: {path: /m}\n"
SPECULATING = "engine: ==0.5.20\nflags: {speculative-algorithm: NEXTN, mamba-radix-cache-strategy: no_buffer}\n"
SM100_ONLY = "engine: ==0.5.20\nflags: {attention-backend: trtllm_mla, tp-size: 2}\n"
NODES = "engine: ==0.5.20\nflags: {nnodes: 2, node-rank: 0, tp-size: 4, dist-init-addr: 'a:1', model-path: /m}\n"
DRAFTING = "engine: ==0.5.20\nflags: {speculative-algorithm: EAGLE, attention-backend: torch_native, model-path: /m}\n"
ACCEPTING = "accept: [{{id: {}, reason: {}{}}}]\n"


def accepting(name: str = "some-finding", reason: str = "known", more: str = "") -> str:
    return SMALL + ACCEPTING.format(name, reason, more)


ROWS: dict[str, Row] = {
    "why": Row(SMALL, f"{SMALL}why: A reason.\n", shown),
    "extends": Row(SMALL, f"{SMALL}extends: parent\n", plan),
    "abstract": Row(SMALL, f"{SMALL}abstract: true\n", plan),
    "engine": Row(SMALL, f"{SMALL}engine: '<0.5.10'\n", in_range),
    "model": Row("why: x\n", SMALL, plan),
    "model.path": Row("model: {path: /m}\n", "model: {path: /other}\n", plan),
    "model.name": Row(
        f"{SPECULATING}model: {{name: Qwen/Qwen3-0.6B}}\n",
        f"{SPECULATING}model: {{name: Qwen/Qwen3-Next-80B-A3B-Instruct}}\n", findings,
    ),
    "model.served-name": Row(SMALL, "model: {path: /m, served-name: chat}\n", plan),
    "hardware": Row(SM100_ONLY, f"{SM100_ONLY}hardware: {{gpu: H100}}\n", findings),
    "hardware.gpu": Row(
        f"{SM100_ONLY}hardware: {{gpu: B200, count: 2}}\n", f"{SM100_ONLY}hardware: {{gpu: H100, count: 2}}\n", findings
    ),
    "hardware.count": Row(
        f"{NODES}hardware: {{gpu: B200, count: 8}}\n", f"{NODES}hardware: {{gpu: B200, count: 4}}\n", findings
    ),
    "hardware.platform": Row(
        f"{DRAFTING}hardware: {{platform: cuda}}\n", f"{DRAFTING}hardware: {{platform: cpu}}\n", findings
    ),
    "hardware.note": Row(f"{SMALL}hardware: {{gpu: H100}}\n", f"{SMALL}hardware: {{gpu: H100, note: PCIe}}\n", shown),
    "flags": Row(SMALL, f"{SMALL}flags: {{page-size: 1}}\n", plan),
    "flags.value": Row(f"{SMALL}flags: {{page-size: {{value: 1}}}}\n", f"{SMALL}flags: {{page-size: {{value: 2}}}}\n",
                       plan),
    "flags.why": Row(f"{SMALL}flags: {{page-size: {{value: 1}}}}\n",
                     f"{SMALL}flags: {{page-size: {{value: 1, why: because}}}}\n", shown),
    "flags.engine": Row(f"{SMALL}flags: {{page-size: {{value: 1}}}}\n",
                        f"{SMALL}flags: {{page-size: {{value: 1, engine: '<0.5.10'}}}}\n", plan),
    "env": Row(SMALL, f"{SMALL}env: {{A: '1'}}\n", plan),
    "env.value": Row(f"{SMALL}env: {{A: {{value: '1'}}}}\n", f"{SMALL}env: {{A: {{value: '2'}}}}\n", plan),
    "env.why": Row(f"{SMALL}env: {{A: {{value: '1'}}}}\n", f"{SMALL}env: {{A: {{value: '1', why: because}}}}\n", shown),
    "env.secret": Row(f"{SMALL}env: {{A: {{value: ''}}}}\n", f"{SMALL}env: {{A: {{secret: true}}}}\n", plan),
    "env.engine": Row(f"{SMALL}env: {{A: {{value: '1'}}}}\n",
                      f"{SMALL}env: {{A: {{value: '1', engine: '<0.5.10'}}}}\n", plan),
    "expect": Row(SMALL, f"{SMALL}expect: {{suite: full}}\n", lambda profile: profile.expectations),
    "accept": Row(SMALL, accepting(), settled),
    "accept.id": Row(accepting(name="another-finding"), accepting(), settled),
    "accept.reason": Row(accepting(), accepting(reason="measured"), shown),
    "accept.until": Row(accepting(), accepting(more=", until: 2026-11-30"), settled),
    "accept.owner": Row(accepting(), accepting(more=", owner: mk"), owned),
}  # fmt: skip


def keys() -> set[str]:
    """Every key that the reader takes; those inside `expect` are another page's."""
    nested = {
        "model": MODEL_KEYS, "hardware": HARDWARE_KEYS, "flags": SETTING_KEYS, "env": ENV_KEYS, "accept": ACCEPT_KEYS,
    }  # fmt: skip
    return {*KEYS, *(f"{key}.{name}" for key, names in nested.items() for name in names)}


def test_the_page_names_the_keys_that_are_read() -> None:
    assert documented("profiles.md") == keys()


def test_each_key_has_a_row() -> None:
    assert set(ROWS) == keys()


@pytest.mark.parametrize("key", sorted(ROWS))
def test_setting_it_changes_something(key: str, tmp_path: Path) -> None:
    row = ROWS[key]
    (tmp_path / "parent.yaml").write_text("flags: {page-size: 16}\n")
    observed = []
    for text in (row.without, row.with_key):
        (tmp_path / "profile.yaml").write_text(text)
        observed.append(row.view(resolve("profile", (tmp_path,))))
    assert observed[0] != observed[1]

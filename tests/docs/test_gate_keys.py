"""Each key of gate.yaml is documented, and setting it changes what the gate reads, remarks, replays or launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from checks.vocabulary import Finding, Severity
from launcher.flows.gate.host_tier import Measure, Pair, host_tier
from launcher.flows.gate.replay_tier import replay_remarks, replay_tier
from launcher.gate import policy as reader
from launcher.gate.affected import means_all
from launcher.gate.judge import Case, judge, own_rules
from launcher.gate.policy import Policy
from launcher.gate.policy_baselines import baseline_remarks
from launcher.gate.report import Affected, Remark
from launcher.gate.side import Machine, Side
from launcher.gate.static import Checked, GroupedFinding, releases, runs_on
from launcher.profile.file import Accepted, Profile
from launcher.transport.base import Command, Stream
from launcher.transport.local import LocalTransport
from tests.docs.key_tables import documented
from tests.support.bench import Bench, bench
from tests.support.gate_recorded import crashed, validated
from tests.support.gate_repo import FILES

TODAY = date(2026, 12, 1)
ERROR = Finding(id="some-finding", severity=Severity.ERROR, message="m", subject="s")
CHAT = Affected(name="chat", change="changed", path="profiles/chat.yaml", reasons=())
ACCEPTED = Accepted(id=ERROR.id, reason="known", where="-:1:1")
FAST = {"verdicts": [], "samples": {"speed": {"decode": [100.0, 101.0, 99.0, 100.5, 99.5]}}}
SLOW = {"verdicts": [], "samples": {"speed": {"decode": [80.0, 81.0, 79.0, 80.5, 79.5]}}}

View = Callable[[Policy, Path], Any]


def of_chat(policy: Policy, folder: Path) -> tuple[Side, Profile]:
    side = Side(folder, policy)
    profile = Side(folder, Policy()).profile("chat")
    assert isinstance(profile, Profile)
    return side, profile


def plain(remarks: list[Remark]) -> list[tuple[str, ...]]:
    return [(item.rule, str(item.status), item.message, item.why) for item in remarks]


# --- what can be observed of a policy


def machines(of: Callable[[Machine], Any]) -> View:
    """Something of each host that the gate knows."""
    return lambda policy, folder: [of(machine) for machine in Side(folder, policy).machines()[0]]


def own(policy: Policy, folder: Path) -> Any:
    """The policy's own rules on a profile with a flag, a variable, no hardware and no reason."""
    side, profile = of_chat(policy, folder)
    return plain(own_rules(replace(profile, why="", hardware={}, engine=type(profile.engine)()), policy, side))


def judged(accept: tuple[Accepted, ...] = (), *, stood: bool = False) -> View:
    """What becomes of an error finding, which is accepted, or stood on the base already."""

    def view(policy: Policy, folder: Path) -> Any:
        side, profile = of_chat(policy, folder)
        now = Checked(findings=(GroupedFinding(finding=ERROR, targets=("t",)),), targets=("t",))
        before = {(ERROR.id, ERROR.subject): frozenset({"t"})} if stood else None
        return plain(judge(Case(profile=replace(profile, accept=accept), now=now, before=before), policy, side, TODAY))

    return view


def replayed(policy: Policy, folder: Path) -> Any:
    """Recorded runs judged again, and what is remarked of them."""
    side = Side(folder, policy)
    again = replay_tier(side, [CHAT], everything=False)
    return [(item.run, item.flipped) for item in again], plain(list(replay_remarks(again, side)))


class Listening(LocalTransport):
    """This machine; it remembers the words of the commands that stream, such as the lock of the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[tuple[str, ...]] = []

    def stream(self, command: Command) -> Stream:
        self.words.append(tuple(command.argv))
        return super().stream(command)


def on_host(policy: Policy, folder: Path, measure: Measure | None = None, *, launches: bool = True) -> Any:
    """A trial of a new profile on this machine with the stand-in engine, beside a stored baseline."""
    transport = Listening()
    made = bench(folder, transport)
    pairs = [Pair(new=accepting(made), old=None, baseline=FAST)] if launches else []
    trials = host_tier(made.context, pairs, made.host, policy.host, measure)
    suites = [
        (made.context.store.find(run).read("validation") or {}).get("suite") for item in trials for run in item.runs
    ]
    return [words[-2] for words in transport.words[:1]], [(item.verdict, len(item.runs)) for item in trials], suites


def accepting(made: Bench) -> Profile:
    """The stand-in's profile, with what it lacks and a real host would not."""
    lacks = ("kernel-package-below-minimum", "model-config-missing", "model-directory-without-weights")
    items = (*lacks, "tokenizer-files-missing")
    return replace(made.profile(), accept=tuple(Accepted(id=name, reason="a stand-in", where="-") for name in items))


def queued(policy: Policy, folder: Path) -> Any:
    return on_host(policy, folder, launches=False)


def trial(decode: Mapping[str, Any]) -> View:
    return lambda policy, folder: on_host(policy, folder, lambda *_: decode)


class Row(Struct, frozen=True):
    """A policy without a key, with it, and what differs."""

    without: str
    with_key: str
    view: View


def row(with_key: str, view: View, without: str = "") -> Row:
    return Row(without, with_key, view)


FORBIDDEN = "forbid:\n  - {flag: max-running-requests"
RUN = "replay:\n  - {run: runs/crash"
VALIDATED = "replay:\n  - {run: runs/good"
LATER = replace(ACCEPTED, until=date(2027, 12, 1))
ROWS: dict[str, Row] = {
    "why": row(f"why: Reasons.\n{FORBIDDEN}}}\n", own, f"{FORBIDDEN}}}\n"),
    "profiles": row("profiles: other\n", lambda policy, folder: sorted(Side(folder, policy).profile_files)),
    "hosts": row("hosts: none.yaml\n", machines(lambda machine: machine.engine_place)),
    "facts": row("facts: none\n", machines(lambda machine: machine.raw)),
    "engines": row("engines: ==0.5.20\n", lambda policy, folder: len(releases(of_chat(policy, folder)[1], policy))),
    "runs-on": row(
        "runs-on: {gpu-box: [batch]}\n",
        lambda policy, folder: machines(lambda item: runs_on(of_chat(policy, folder)[1], item, policy))(policy, folder),
    ),
    "affects-all": row("affects-all: ['pins*']\n", lambda policy, _: means_all(policy, ("pins.txt",))),
    "findings": row("findings: {ignore: [some-finding]}\n", judged()),
    "findings.fail": row("findings: {fail: []}\n", judged()),
    "findings.owner": row("findings: {owner: [some-finding]}\n", judged((ACCEPTED,))),
    "findings.never": row("findings: {never: [some-finding]}\n", judged((ACCEPTED,))),
    "findings.ignore": row("findings: {ignore: [some-finding]}\n", judged()),
    "findings.old": row("findings: {old: fail}\n", judged(stood=True)),
    "acceptance": row("acceptance: {needs: [until]}\n", judged((ACCEPTED,))),
    "acceptance.needs": row("acceptance: {needs: [owner]}\n", judged((ACCEPTED,))),
    "acceptance.at-most-days": row("acceptance: {at-most-days: 90}\n", judged((LATER,))),
    "require": row("require: {why: ['*']}\n", own),
    "require.baseline": row("require: {baseline: ['*']}\n", own),
    "require.engine-range": row("require: {engine-range: ['*']}\n", own),
    "require.hardware": row("require: {hardware: ['*']}\n", own),
    "require.why": row("require: {why: ['*']}\n", own),
    "baselines": row(
        "baselines: {chat: evidence/none.json}\n",
        lambda policy, folder: plain(list(baseline_remarks(Side(folder, policy), ["chat"]))),
    ),
    "forbid": row(f"{FORBIDDEN}}}\n", own),
    "forbid.flag": row("forbid:\n  - {flag: page-size}\n", own, f"{FORBIDDEN}}}\n"),
    "forbid.env": row("forbid:\n  - {env: A}\n", own),
    "forbid.value": row(f"{FORBIDDEN}, value: '1'}}\n", own, f"{FORBIDDEN}}}\n"),
    "forbid.except": row(f"{FORBIDDEN}, except: [chat]}}\n", own, f"{FORBIDDEN}}}\n"),
    "forbid.reason": row(f"{FORBIDDEN}, reason: too many}}\n", own, f"{FORBIDDEN}}}\n"),
    "refused": row("refused: [chat]\n", judged()),
    "replay": row("replay: [runs/crash]\n", replayed),
    "replay.run": row(f"{RUN}}}\n", replayed, f"{VALIDATED}}}\n"),
    "replay.profile": row(f"{RUN}, profile: solo}}\n", replayed, f"{RUN}}}\n"),
    "replay.expect": row(f"{RUN}, expect: {{cause: another}}}}\n", replayed, f"{RUN}}}\n"),
    "replay.expect.refused": row(f"{RUN}, expect: {{refused: true}}}}\n", replayed, f"{RUN}}}\n"),
    "replay.expect.cause": row(f"{RUN}, expect: {{cause: another}}}}\n", replayed, f"{RUN}}}\n"),
    "replay.expect.healthy": row(f"{RUN}, expect: {{healthy: true}}}}\n", replayed, f"{RUN}}}\n"),
    "replay.expect.outcome": row(f"{VALIDATED}, expect: {{outcome: pass}}}}\n", replayed, f"{VALIDATED}}}\n"),
    "replay.expect.level": row(f"{VALIDATED}, expect: {{level: alive}}}}\n", replayed, f"{VALIDATED}}}\n"),
    "host": row("host: {wait-minutes: 7}\n", queued),
    "host.wait-minutes": row("host: {wait-minutes: 7}\n", queued),
    "host.budget-gpu-minutes": row("host: {budget-gpu-minutes: 0}\n", trial(FAST)),
    "host.margin": row("host: {margin: 0.5}\n", trial(SLOW)),
    "host.rounds": row("host: {rounds: 2}\n", trial(FAST)),
    "host.suite": row("host: {suite: smoke}\n", on_host),
}  # fmt: skip


def keys() -> set[str]:
    """Every key that the reader takes, with those inside others."""
    nested = {
        "findings": reader.FINDING_KEYS, "acceptance": reader.ACCEPTANCE_KEYS, "require": reader.REQUIREMENTS,
        "forbid": reader.FORBID_KEYS, "replay": reader.REPLAY_KEYS, "replay.expect": reader.EXPECTATIONS,
        "host": reader.HOST_KEYS,
    }  # fmt: skip
    return {*reader.KEYS, *(f"{key}.{name}" for key, names in nested.items() for name in names)}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files of a profiles repository, with two recorded runs."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    chat = tmp_path / "profiles" / "chat.yaml"
    chat.write_text(chat.read_text() + "env: {A: '1'}\n")
    crashed(tmp_path / "runs" / "crash")
    validated(tmp_path / "runs" / "good")
    return tmp_path


def test_the_page_names_the_keys_that_are_read() -> None:
    assert documented("gate.md", "## gate.yaml") == keys()


def test_each_key_has_a_row() -> None:
    assert set(ROWS) == keys()


LAUNCHING = ("host.budget-gpu-minutes", "host.margin", "host.rounds", "host.suite")


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=pytest.mark.slow if key in LAUNCHING else ()) for key in sorted(ROWS)]
)
def test_setting_it_changes_something(key: str, repository: Path) -> None:
    one, observed = ROWS[key], []
    for text in (one.without, one.with_key):
        (repository / "gate.yaml").write_text(text)
        observed.append(one.view(reader.load(repository / "gate.yaml"), repository))
    assert observed[0] != observed[1]

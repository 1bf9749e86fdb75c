"""gate.yaml: every key is optional, every fault is an error at its line, and nothing is ignored silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.catalog.yaml_reader import YamlError
from launcher.gate.policy import Policy, fits, load


def policy(folder: Path, text: str) -> Policy:
    (folder / "gate.yaml").write_text(text)
    return load(folder / "gate.yaml", "serving/gate.yaml")


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load(tmp_path / "gate.yaml") == Policy()


def test_a_file_with_one_key_keeps_all_other_defaults(tmp_path: Path) -> None:
    written, defaults = policy(tmp_path, "why: Ours.\n"), Policy()
    assert (written.why, written.path) == ("Ours.", "serving/gate.yaml")
    same = ("profiles", "hosts", "facts", "engines", "fail", "owner", "never", "ignore", "old_fails", "require", "host")
    assert [getattr(written, name) for name in same] == [getattr(defaults, name) for name in same]


def test_every_section_is_read(tmp_path: Path) -> None:
    read = policy(
        tmp_path,
        "profiles: [a, b]\nhosts: h.yaml\nfacts: f\nengines: '>=0.5.20'\nruns-on: {box: chat, other: [a, 'b*']}\n"
        "affects-all: pins*\nfindings: {fail: [error], owner: [x], never: [y], ignore: [z], old: fail}\n"
        "acceptance: {needs: [owner, until], at-most-days: 90}\nrequire: {why: ['*'], baseline: prod*}\n"
        "refused: [bad*]\nhost: {budget-gpu-minutes: 5, wait-minutes: 1.5, suite: smoke, margin: 0.1, rounds: 2}\n",
    )
    assert (read.profiles, read.hosts, read.facts, read.engines.text) == (("a", "b"), "h.yaml", "f", ">=0.5.20")
    assert read.runs_on == {"box": ("chat",), "other": ("a", "b*")}
    assert (read.affects_all, read.fail, read.owner, read.never) == (("pins*",), ("error",), ("x",), ("y",))
    assert (read.ignore, read.old_fails) == (("z",), True)
    assert (read.acceptance_needs, read.acceptance_days) == (("owner", "until"), 90)
    assert read.require == {"why": ("*",), "baseline": ("prod*",)}
    assert [pattern for pattern, _ in read.refused] == ["bad*"]
    assert (read.host.budget, read.host.wait, read.host.suite) == (5.0, 1.5, "smoke")
    assert (read.host.margin, read.host.rounds) == (0.1, 2)


def test_a_value_that_a_remark_may_point_to_knows_its_line(tmp_path: Path) -> None:
    read = policy(
        tmp_path,
        "baselines:\n  chat: evidence/chat.json\nrefused:\n  - bad\nforbid:\n  - {flag: x}\nreplay:\n  - runs/a\n",
    )
    assert read.baselines == {"chat": ("evidence/chat.json", "serving/gate.yaml:2:9")}
    assert read.refused == (("bad", "serving/gate.yaml:4:5"),)
    assert (read.forbid[0].where, read.replay[0].where) == ("serving/gate.yaml:6:5", "serving/gate.yaml:8:5")
    assert read.where["replay"] == "serving/gate.yaml:7:1"


@pytest.mark.parametrize("spelling", ["disable-radix-cache", "--disable-radix-cache", "disable_radix_cache"])
def test_a_forbidden_flag_is_known_under_every_spelling(tmp_path: Path, spelling: str) -> None:
    [item] = policy(tmp_path, f"forbid: [{{flag: {spelling}}}]").forbid
    assert (item.kind, item.name, item.value) == ("flag", "disable-radix-cache", None)


@pytest.mark.parametrize(("written", "value"), [("true", "true"), ("0.90", "0.90"), ("''", ""), ("null", None)])
def test_a_forbidden_value_is_the_text_as_typed(tmp_path: Path, written: str, value: str | None) -> None:
    text = f"forbid:\n  - {{env: MY_VAR, value: {written}, except: [a], reason: slow}}"
    [item] = policy(tmp_path, text).forbid
    assert (item.kind, item.name, item.value) == ("env", "MY_VAR", value)
    assert (item.exempt, item.reason) == (("a",), "slow")


def test_a_recorded_run_is_a_path_or_a_path_with_expectations(tmp_path: Path) -> None:
    text = "replay:\n  - runs/a\n  - {run: b.tar.gz, profile: chat, expect: {healthy: false, cause: x}}\n"
    plain, detailed = policy(tmp_path, text).replay
    assert (plain.run, plain.profile, plain.expect) == ("runs/a", "", {})
    assert (detailed.run, detailed.profile) == ("b.tar.gz", "chat")
    assert detailed.expect == {"healthy": False, "cause": "x"}


def test_an_empty_list_of_failures_means_that_nothing_fails(tmp_path: Path) -> None:
    assert policy(tmp_path, "findings: {fail: []}").fail == ()
    assert policy(tmp_path, "findings: {owner: [x]}").fail == Policy().fail


def test_old_faults_fail_only_when_the_policy_says_so(tmp_path: Path) -> None:
    assert not policy(tmp_path, "findings: {old: report}").old_fails
    assert policy(tmp_path, "findings: {old: fail}").old_fails


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("findigs: {}", "1:1", "unknown gate policy key `findigs`", "`findings`"),
        ("findings: {fial: []}", "1:12", "`fial`", "`fail`"),
        ("findings: {old: maybe}", "1:17", "`maybe` is not valid for `old`", "`report`"),
        ("acceptance: {needs: [ownr]}", "1:22", "no key `ownr`", "`owner`"),
        ("acceptance: {at-most-days: -3}", "1:28", "whole number of days", ""),
        ("acceptance: {at-most-days: 1.5}", "1:28", "whole number of days", ""),
        ("acceptance: {until: x}", "1:14", "`until`", ""),
        ("require: {wy: ['*']}", "1:11", "unknown requirement `wy`", "`why`"),
        ("engines: newest", "1:10", "not a version range", ">="),
        ("runs-on: [a]", "1:10", "expected a mapping", ""),
        ("runs-on: {a: null}", "1:14", "expected text", ""),
        ("baselines: {a: [b]}", "1:16", "expected text", ""),
        ("forbid: [{reason: x}]", "1:10", "either `flag` or `env`", ""),
        ("forbid: [{flag: a, env: B}]", "1:10", "either `flag` or `env`", "one entry for each"),
        ("forbid: [{flag: a, exept: b}]", "1:20", "`exept`", "`except`"),
        ("forbid: [a]", "1:10", "expected a mapping", ""),
        ("refused: {a: b}", "1:10", "expected text", ""),
        ("replay: [{profile: x}]", "1:10", "`run` is missing", ""),
        ("replay: [{run: x, expect: {cuase: y}}]", "1:28", "unknown expectation `cuase`", "`cause`"),
        ("host: {margin: 1}", "1:16", "share between 0 and 1", ""),
        ("host: {margin: 0}", "1:16", "share between 0 and 1", ""),
        ("host: {rounds: 0}", "1:16", "at least 1", ""),
        ("host: {rounds: 1.5}", "1:16", "at least 1", ""),
        ("host: {wait-minutes: long}", "1:22", "expected a number", ""),
        ("host: {siute: full}", "1:8", "`siute`", "`suite`"),
        ("- a", "1:1", "expected a mapping", ""),
    ],
)
def test_a_fault_is_an_error_with_its_line_and_column(
    tmp_path: Path, text: str, where: str, message: str, hint: str
) -> None:
    with pytest.raises(YamlError) as caught:
        policy(tmp_path, text)
    assert caught.value.where == f"serving/gate.yaml:{where}"
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: [1", b"\x00"])
def test_junk_is_an_error_that_names_the_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "gate.yaml").write_bytes(data)
    with pytest.raises(YamlError, match=r"^gate\.yaml"):
        load(tmp_path / "gate.yaml")


@pytest.mark.parametrize(
    ("name", "patterns", "matches"),
    [
        ("chat", ("chat",), True),
        ("chat", ("batch", "c*"), True),
        ("_base/llama", ("_base/*",), True),
        ("Chat", ("chat",), False),
        ("chat-2", ("chat",), False),
        ("chat", (), False),
    ],
)
def test_names_fit_shell_patterns_in_exact_case(name: str, patterns: tuple[str, ...], matches: bool) -> None:
    assert fits(name, patterns) is matches

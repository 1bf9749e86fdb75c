"""One profile file: values keep their text and their line, secrets stay out, and every fault is shown where it is."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from checks.catalog.yaml_reader import YamlError, parse
from launcher.profile.file import Profile, is_variable, parse_profile


def profile(text: str) -> Profile:
    return parse_profile("p", "p.yaml", parse(text, "p.yaml"))


def flags(text: str) -> dict[str, Any]:
    return {name: item.value for name, item in profile(f"flags: {text}").flags.items()}


def test_an_empty_file_is_a_profile_that_sets_nothing() -> None:
    assert profile("{}") == Profile(name="p", path="p.yaml", parents=("p.yaml",))


def test_every_section_is_read() -> None:
    read = profile(
        "why: ' Chat. '\nabstract: true\nengine: '>=0.5.20'\nmodel: {path: /m, served-name: m}\n"
        "hardware: {gpu: H100, count: 2}\nflags: {tp-size: 2}\nenv: {A: x}\nexpect: {suite: full}\n"
    )
    assert (read.why, read.abstract, read.engine.text) == ("Chat.", True, ">=0.5.20")
    assert {name: item.value for name, item in (*read.model.items(), *read.hardware.items())} == {
        "path": "/m", "served-name": "m", "gpu": "H100", "count": "2",
    }  # fmt: skip
    assert (read.flags["tp-size"].value, read.env["A"].value, read.expect) == ("2", "x", {"suite": "full"})


def test_values_stay_the_text_that_was_typed() -> None:
    assert list(flags("{a: NO, b: 12:30:45, c: 0777, d: 1e3, e: on, f: 2026-01-01, g: '', h: 0.90}").values()) == [
        "NO", "12:30:45", "0777", "1e3", "on", "2026-01-01", "", "0.90",
    ]  # fmt: skip


def test_switches_and_lists_are_not_text() -> None:
    assert flags("{a: true, b: false, c: 'true', d: [1, x], e: []}") == {
        "a": True, "b": False, "c": "true", "d": ["1", "x"], "e": [],
    }  # fmt: skip


def test_a_flag_is_known_under_one_name_however_it_is_spelled() -> None:
    assert flags("{--tp_size: 2, page_size: 1}") == {"tp-size": "2", "page-size": "1"}


def test_a_value_may_carry_its_reason_and_its_releases() -> None:
    item = profile("flags:\n  x: {value: 1, why: ' fast ', engine: <0.5.20}\n").flags["x"]
    assert (item.value, item.why, item.engine.text, item.where) == ("1", "fast", "<0.5.20", "p.yaml:2:3")


def test_a_switch_among_the_variables_is_one_or_zero() -> None:
    env = profile("env: {A: true, B: false, C: 'true', D: {value: true}, E: 1.50}").env
    assert {name: item.value for name, item in env.items()} == {"A": "1", "B": "0", "C": "true", "D": "1", "E": "1.50"}


def test_null_sets_nothing() -> None:
    read = profile("flags: {x: null}\nenv: {A: null}\nmodel: {path: null}\nhardware: null\naccept: null\n")
    assert not (read.flags or read.env or read.model or read.hardware or read.accept)


def test_a_secret_is_named_and_has_no_value() -> None:
    env = profile("env:\n  HF_TOKEN: {why: the hub}\n  OTHER: {secret: true}\n  A_TOKEN: {secret: false, value: x}").env
    assert [(item.secret, item.value) for item in env.values()] == [(True, ""), (True, ""), (False, "x")]
    assert profile("flags: {api-key: env:MY_KEY}").flags["api-key"].value == "env:MY_KEY"


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("flags: [1]", "1:8", "expected a mapping, found a list", ""),
        ("flags: {a: {b: 1}}", "1:13", "unknown key `b`", ""),
        ("flags: {a: {why: x}}", "1:12", "`value` is missing", ""),
        ("flags: {a: {value: {b: 1}}}", "1:20", "a flag takes text", "quotes"),
        ("flags: {a: [[1]]}", "1:13", "expected text, found a list", ""),
        ("flags:\n  page_size: 1\n  page-size: 2", "3:3", "duplicate key `page-size`", ""),
        ("engine: yes please", "1:9", "is not a version range", "'>=0.5.10,<0.5.20'"),
        ("flags:\n  api-key: abc", "2:12", "is a secret", "env:NAME"),
        ("flags:\n  api-key: {value: abc}", "2:20", "is a secret", "env:NAME"),
        ("env: {HF_TOKEN: abc}", "1:17", "looks like a secret", "secret: true"),
        ("env: {A: {secret: true, value: abc}}", "1:10", "looks like a secret", "export A"),
        ("env: {A: {why: x}}", "1:10", "`value` is missing", ""),
        ("env: {A: [1]}", "1:10", "expected text", ""),
        ("env: {A: {secret: maybe}}", "1:19", "expected true or false", ""),
        ("hardware: {count: two}", "1:12", "not a number of GPUs", ""),
        ("hardware: {count: ²}", "1:12", "not a number of GPUs", ""),
        ("hardware: {gpus: 2}", "1:12", "unknown key `gpus`", "`gpu`"),
        ("model: {pth: x}", "1:9", "unknown key `pth`", "`path`"),
        ("abstract: yes", "1:11", "expected true or false", "`yes`"),
        ("expect: {sute: full}", "1:10", "sute", "suite"),
        ("expect: {suite: huge}", "1:10", "huge", ""),
        ("accept: {id: x}", "1:9", "expected a list", ""),
        ("accept: [{id: x}]", "1:10", "`reason` is missing", ""),
        ("accept: [{id: x, reason: ' '}]", "1:10", "`reason` is missing", ""),
        ("accept: [{reason: x}]", "1:10", "`id` is missing", ""),
        ("accept: [{id: x, reason: y, until: soon}]", "1:36", "is not a date", "2027"),
        ("accept: [{id: x, reason: y, until: 2026-02-30}]", "1:36", "is not a date", ""),
        ("accept: [{id: x, reason: y, unitl: soon}]", "1:29", "`unitl`", "`until`"),
    ],
)
def test_a_fault_is_shown_with_file_line_and_column(text: str, where: str, message: str, hint: str) -> None:
    with pytest.raises(YamlError) as caught:
        profile(text)
    assert (caught.value.where, message in caught.value.message) == (f"p.yaml:{where}", True), caught.value.message
    assert hint in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("name", "valid"),
    [("A", True), ("_", True), ("a_1", True), ("", False), ("1A", False), ("A-B", False), ("A B", False), ("Ü", False),
     ("A\n", False), ("A;x", False)],
)  # fmt: skip
def test_a_variable_has_a_name_that_a_shell_accepts(name: str, valid: bool) -> None:
    assert is_variable(name) is valid
    if not valid:
        with pytest.raises(YamlError, match="not a valid name"):
            profile(f"env: {{{name!r}: x}}" if "\n" not in name else 'env: {"A\\n": x}')


def test_an_acceptance_keeps_its_line_date_and_owner() -> None:
    [item] = profile("accept:\n  - {id: x, reason: ' why ', until: 2027-03-31, owner: ops}\n").accept
    assert (item.id, item.reason, item.owner, item.until) == ("x", "why", "ops", date(2027, 3, 31))
    assert item.where == "p.yaml:2:5"


def test_accepted_findings_are_accepted_among_the_warnings_of_the_log_too() -> None:
    read = profile("expect: {ready_within: 60}\naccept: [{id: x, reason: y, until: 2027-03-31}, {id: z, reason: w}]")
    warnings = read.expectations.accept_warnings
    assert {name: (item.reason, item.until) for name, item in warnings.items()} == {
        "x": ("y", "2027-03-31"), "z": ("w", ""),
    }  # fmt: skip
    assert (read.expectations.ready_within, read.expect) == (60.0, {"ready-within": 60})
    assert profile("expect: {suite: full}").written_expectations == {"suite": "full"}


def test_the_digest_ignores_comments_order_and_reasons() -> None:
    one, other = profile("flags: {x: 1, y: 2}"), profile("# note\nwhy: z\nflags:\n  y: {value: 2, why: two}\n  x: 1\n")
    assert one.digest == other.digest


@pytest.mark.parametrize(
    "text",
    [
        "flags: {x: 2}", "flags: {x: '1', y: 1}", "flags: {x: [1]}", "flags: {x: {value: 1, engine: <0.5.20}}",
        "flags: {x: 1}\nenv: {A: x}", "flags: {x: 1}\nmodel: {path: /m}", "flags: {x: 1}\nengine: <0.5.20",
    ],
)  # fmt: skip
def test_the_digest_changes_with_the_launch(text: str) -> None:
    assert profile(text).digest != profile("flags: {x: 1}").digest


def test_the_digest_tells_a_switch_from_a_word() -> None:
    assert profile("flags: {x: true}").digest != profile("flags: {x: 'true'}").digest


def test_what_is_only_expected_or_accepted_does_not_change_the_digest() -> None:
    plain = profile("flags: {x: 1}")
    assert replace(plain, expect={"suite": "full"}, why="z", hardware=dict(plain.flags)).digest == plain.digest

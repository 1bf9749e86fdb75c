"""Raises, asserts and warnings of a small source: template, conditions, function and line of each."""

from __future__ import annotations

import pytest

from checks.engine.source.sites import ANCHOR_DIGITS, Site, anchor, read_sites, row
from tests.support.engine_sources import source_tree


def sites(body: str, path: str = "srt/a.py") -> list[Site]:
    """Sites of a function `f` with this body."""
    text = "def f(self):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return list(read_sites(source_tree({path: text})))


def only(body: str) -> Site:
    [site] = sites(body)
    return site


def test_sites_know_their_function_their_conditions_and_their_template() -> None:
    source = (
        "class Args:\n    def check(self):\n        if self.a > 1:\n            message = f'a is {self.a}'\n"
        "            raise ValueError(message + ', too {much}')\n        else:\n"
        "            assert self.b % 2 == 0\n        logger.warning('b %s of 100 %%', self.b)\n"
    )
    assert list(read_sites(source_tree({"srt/server_args.py": source}))) == [
        Site("ValueError", "a is {self.a}, too {{much}}", ("self.a > 1",), "Args.check", "srt/server_args.py", 5, 5),
        Site("assert", "", ("not (self.a > 1)", "not (self.b % 2 == 0)"), "Args.check", "srt/server_args.py", 7, 7),
        Site("warning", "b {…} of 100 %", (), "Args.check", "srt/server_args.py", 8, 8),
    ]


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("raise ValueError('bad')", "ValueError", "bad"),
        ("raise errors.BadError('bad')", "BadError", "bad"),
        ("raise ValueError", "ValueError", ""),
        ("raise ValueError()", "ValueError", ""),
        ("assert x, f'{x} is bad'", "assert", "{x} is bad"),
        ("logger.error('bad')", "error", "bad"),
        ("logging.warning('bad')", "warning", "bad"),
        ("print_warning_once('bad')", "print_warning_once", "bad"),
    ],
)
def test_each_way_to_complain_is_a_site(statement: str, kind: str, message: str) -> None:
    assert (only(statement).kind, only(statement).message) == (kind, message)


@pytest.mark.parametrize(
    "statement", ["raise", "raise error", "raise make_error('x')", "logger.info('x')", "logger.error()", "x = 'bad'"]
)
def test_what_raises_something_given_or_only_informs_is_none(statement: str) -> None:
    assert sites(statement) == []


@pytest.mark.parametrize(
    ("message", "template"),
    [
        ("'plain'", "plain"),
        ("'literal {brace}'", "literal {{brace}}"),
        ("f'{a.b} of {c[0]}'", "{a.b} of {c[0]}"),
        ("f'a {d[{1}]}'", "a {…}"),
        ("'a' + f'{b}' + 'c'", "a{b}c"),
        ("'%d of %s, 5%%' % (a, b)", "{…} of {…}, 5%"),
        ("'{} of {b}'.format(a, b=c)", "{…} of {…}"),
        ("'two\\n  lines'", "two lines"),
        ("compute(a)", "{compute(a)}"),
        ("f'{" + "x" * 80 + "}'", "{" + "x" * 59 + "…}"),
        ("'x' * 500", "{'x' * 500}"),
        ("'" + "x" * 500 + "'", "x" * 399 + "…"),
    ],
)
def test_a_template_keeps_what_is_filled_in_as_source(message: str, template: str) -> None:
    assert only(f"raise ValueError({message})").message == template


def test_a_name_is_followed_to_its_last_text_a_few_steps_far() -> None:
    assert only("m = 'first'\nm = 'second'\nraise ValueError(m)").message == "second"
    assert only("a = 'x'\nb = a\nraise ValueError(b)").message == "x"
    assert only("a = a\nraise ValueError(a)").message == "{a}"
    assert only("raise ValueError(given)").message == "{given}"


@pytest.mark.parametrize(
    ("body", "conditions"),
    [
        ("if a:\n    raise E('x')", ("a",)),
        ("if a:\n    pass\nelse:\n    raise E('x')", ("not (a)",)),
        ("if a:\n    pass\nelif b:\n    raise E('x')", ("not (a)", "b")),
        ("while a:\n    raise E('x')", ("a",)),
        ("for a in b:\n    raise E('x')", ()),
        ("try:\n    go()\nexcept KeyError:\n    raise E('x')", ("except KeyError",)),
        ("try:\n    go()\nexcept:\n    raise E('x')", ("except",)),
        ("try:\n    go()\nfinally:\n    raise E('x')", ()),
        ("with a:\n    if b:\n        raise E('x')", ("b",)),
        ("match a:\n    case 1:\n        raise E('x')", ()),
        ("if a:\n    if b:\n        if c:\n            if d:\n                assert e", ("b", "c", "d", "not (e)")),
        ("if a:\n    def g():\n        raise E('x')", ()),
    ],
)
def test_conditions_are_those_under_which_a_site_is_reached_the_last_four(
    body: str, conditions: tuple[str, ...]
) -> None:
    assert only(body).conditions == conditions


def test_a_site_over_several_lines_ends_at_its_last() -> None:
    site = only("raise ValueError(\n    'a'\n    'b'\n)")
    assert (site.line, site.end, site.message) == (2, 5, "ab")


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("srt/a.py", True), ("launch_server.py", True), ("cli/x.py", True), ("test/a.py", False),
        ("srt/debug_utils/a.py", False), ("srt/hardware_backend/a.py", False),
    ],
)  # fmt: skip
def test_sites_are_read_where_a_server_of_this_hardware_runs(path: str, read: bool) -> None:
    assert bool(sites("raise E('x')", path)) is read


@pytest.mark.parametrize(
    ("template", "piece"),
    [
        ("{a} short {b} the longest piece {c}", " the longest piece "),
        ("all of it", "all of it"),
        ("{a}", ""),
        ("", ""),
        ("first {x} other", "first "),
    ],
)
def test_the_anchor_is_the_longest_literal_of_a_template(template: str, piece: str) -> None:
    start, length = anchor(template)
    assert template[start : start + length] == piece


def test_a_row_contains_the_position_of_its_anchor() -> None:
    written = row(Site("ValueError", "{a} is too large", ("a > 1", "b"), "C.f", "srt/a.py", 7, 9))
    assert written[ANCHOR_DIGITS:].split("\t") == [
        "srt/a.py", "7", "2", "C.f", "ValueError", "{a} is too large", "a > 1", "b",
    ]  # fmt: skip
    start, length = int(written[:4], 16), int(written[4:ANCHOR_DIGITS], 16)
    assert written[start : start + length] == " is too large"

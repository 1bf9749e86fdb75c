"""The harness of these tests sees what a page says: blocks, commands, outputs, and where an output differs."""

from __future__ import annotations

import pytest

from tests.docs.execution import NotParsed, agrees, parse, shown, words_of
from tests.docs.pages import blocks, command_of, steps
from tests.docs.regenerate import replaced

PAGE = """\
# A page

    $ launch list
    one
    two

    $ launch runs

Text, and an item:

* first
    goes on here

```yaml
why: x
```

    make test      # remark
    launch check P --host H          what it does
"""


def test_blocks_are_found_with_their_lines() -> None:
    found = blocks("page", PAGE)
    assert [(block.line, block.language, block.is_shell) for block in found] == [
        (3, "", True), (15, "yaml", False), (18, "", True),
    ]  # fmt: skip
    assert found[1].text == "why: x\n"


def test_commands_are_found_with_their_outputs() -> None:
    first, _, last = blocks("page", PAGE)
    assert [(step.line, step.command, step.output) for step in steps(first)] == [
        (3, "launch list", ("one", "two", "")), (7, "launch runs", ()),
    ]  # fmt: skip
    assert [step.command for step in steps(last)] == ["make test", "launch check P --host H"]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("launch gate --all    # every profile", "launch gate --all"),
        ("launch check P --host H", "launch check P --host H"),
        ("launch show P   what it is", "launch show P"),
        ("# only a remark", ""),
    ],
)
def test_a_remark_is_no_part_of_a_command(line: str, command: str) -> None:
    assert command_of(line) == command


@pytest.mark.parametrize(
    ("expected", "output", "equal"),
    [
        ("a b\nc", "a b c\n", True),
        ("a …\nc", "a b b c", True),
        ("a\n...\nc", "a b c", True),
        ("a\n…", "a b c", True),
        ("a\n…\nb", "a c", False),
        ("a b", "a b c", False),
        ("…\nb\n…\na\n…", "x a x b x", False),
        ("took 3.1 s on port 30000", "took 17 s on port 51234", True),
        ("run 20261129-120000-chat-0a1b", "run 20270101-000000-chat-ffff", True),
        ("run 20261129-120000-chat-0a1b", "run 20270101-000000-batch-ffff", False),
        ("see ~/x/report.html", "see /tmp/a/b/report.html", False),
        ("see /home/me/report.html", "see /tmp/a/b/report.html", True),
    ],
)
def test_an_output_agrees_but_for_what_varies_and_what_is_left_out(expected: str, output: str, equal: bool) -> None:
    assert agrees(expected.splitlines(), output) is equal


def test_what_is_written_for_a_page_agrees_with_its_output() -> None:
    output = "error  " + "a long word-with-hyphens and more " * 12 + "\n         remedy x: 1  (Because of it.)\n"
    lines = shown(output, "    ")
    assert max(map(len, lines)) <= 112 and len(lines) > 3
    assert agrees(lines, output)


def test_a_regenerated_output_stands_where_the_old_one_was() -> None:
    after = replaced("page", PAGE, {3: ["    $ launch list", "    three"]})
    assert after == PAGE.replace("    one\n    two\n", "    three\n")


@pytest.mark.parametrize(
    "line",
    ["launch chekc P", "launch check P --gpus 8x", "launch init", "diagnose log FILE --appply x", "launch logs a b"],
)
def test_a_command_line_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises(NotParsed):
        parse(words_of(line))


def test_names_of_a_page_stand_for_something() -> None:
    assert words_of(".venv/bin/launch run ID", {"ID": "last"}) == ["launch", "run", "last"]

"""Both regex engines give the same matches and the same error, and neither takes quadratic time on long lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from checks.catalog.line_patterns import FALLBACK_LINE_CHARS, compile_line, re2_module


@pytest.fixture(params=["re2", "standard library"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each regex engine in turn; the standard library is used if RE2 cannot be imported."""
    caches = (re2_module, compile_line)
    for cached in caches:
        cached.cache_clear()
    if request.param == "standard library":
        monkeypatch.setitem(sys.modules, "re2", None)
    elif re2_module() is None:
        pytest.skip("RE2 is not installed")
    yield request.param
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("pattern", "line", "groups"),
    [
        ("^ValueError: (?P<what>.+)$", "ValueError: no weights", {"what": "no weights"}),
        ("^weights", "no weights", None),
        ("w[aeiou]+ghts", "no weights", {}),
        (r"(?P<a>\d+)(?: of (?P<b>\d+))?", "rank 3", {"a": "3", "b": None}),
        ("[Oo]ut of (?P<what>memory)", "CUDA out of memory", {"what": "memory"}),
        ("é+", "caféé", {}),
        ("", "", {}),
    ],
)
def test_both_engines_give_the_same_groups(
    engine: str, pattern: str, line: str, groups: dict[str, str | None] | None
) -> None:
    match = compile_line(pattern).search(line)
    assert (None if match is None else match.groupdict()) == groups


def test_a_match_hands_out_its_text(engine: str) -> None:
    match = compile_line("(b+)(c)?").search("abbd")
    assert match is not None
    assert (match.group(), match.group(1), match.group(2)) == ("bb", "bb", None)


@pytest.mark.parametrize("pattern", ["a(b", "[z-a]", "*", "(?P<x"])
def test_a_malformed_pattern_is_quoted_in_the_complaint_and_nowhere_else(
    engine: str, pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=re.escape(f"`{pattern}` is not a valid regular expression: ")):
        compile_line(pattern)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", ["(?i)draft", "rank (?i:died)", "(?si)x", "(?i-s:x)"])
def test_a_pattern_that_ignores_case_is_refused(engine: str, pattern: str) -> None:
    """A line is kept for the words of a pattern as they are written: another spelling would never be seen."""
    with pytest.raises(ValueError, match="write out the spellings"):
        compile_line(pattern)


@pytest.mark.parametrize("pattern", [r"\(\?i\)", "(?P<i>x)", "(?:i)"])
def test_what_only_looks_like_ignoring_case_is_accepted(engine: str, pattern: str) -> None:
    compile_line(pattern)


def test_the_standard_library_searches_only_the_start_of_a_long_line(engine: str) -> None:
    line = "x" * FALLBACK_LINE_CHARS + "needle"
    cut = engine == "standard library"
    assert (compile_line("needle").search(line) is None) is cut
    assert compile_line("needle").search(line[6:]) is not None


def test_a_back_reference_is_refused_by_the_linear_engine_alone(engine: str) -> None:
    """That is why lint compiles every pattern in both."""
    if engine == "re2":
        with pytest.raises(ValueError, match="is not a valid regular expression"):
            compile_line(r"(a)\1")
    else:
        assert compile_line(r"(a)\1").search("aa")


def test_a_pattern_is_compiled_once() -> None:
    assert compile_line("^once$") is compile_line("^once$")

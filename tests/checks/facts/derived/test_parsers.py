"""Whether a tool or reasoning parser speaks the syntax of the model's family."""

from __future__ import annotations

import pytest

from checks.engine.flag_schema import load
from checks.facts.derived.model_families import _FAMILIES
from checks.facts.derived.parsers import _REASONING, _TOOLS, derive

TOOL, REASONING = "flag.tool-call-parser", "flag.reasoning-parser"


@pytest.mark.parametrize(
    ("family", "parser", "fits", "wanted"),
    [
        ("qwen3", "qwen25", True, "qwen25 or qwen or hermes"),
        ("qwen3", "qwen3_coder", False, "qwen25 or qwen or hermes"),
        ("qwen3-coder", "qwen3_coder", True, "qwen3_coder"),
        ("qwen3-coder", "qwen25", False, "qwen3_coder"),
        ("glm-4.5", "glm47", True, "glm45 or glm or glm47"),
        ("glm-4.7", "glm45", False, "glm47 or glm"),
        ("deepseek-v3.1", "deepseekv3", False, "deepseekv31"),
        ("kimi-k2", "auto", True, "kimi_k2"),
        ("kimi-k2", "response_template", True, "kimi_k2"),
    ],
)
def test_a_tool_parser_is_judged_by_the_family(family: str, parser: str, fits: bool, wanted: str) -> None:
    assert derive({"model.family": family, TOOL: parser}) == {
        "launch.tool_parser_fits": fits, "launch.tool_parser_wanted": wanted,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("family", "parser", "fits", "wanted"),
    [
        ("qwen3", "qwen3", True, "qwen3 or qwen3-thinking or deepseek-r1"),
        ("deepseek-v3.1", "deepseek-r1", False, "deepseek-v3"),
        ("llama-3", "deepseek-r1", False, "none"),
        ("llama-3", "auto", True, "none"),
    ],
)
def test_a_reasoning_parser_is_judged_by_the_family(family: str, parser: str, fits: bool, wanted: str) -> None:
    assert derive({"model.family": family, REASONING: parser}) == {
        "launch.reasoning_parser_fits": fits, "launch.reasoning_parser_wanted": wanted,
    }  # fmt: skip


@pytest.mark.parametrize(
    "facts", [{}, {"model.family": "qwen3"}, {"model.family": "unheard-of", TOOL: "hermes"}, {TOOL: "x"}]
)
def test_without_a_known_family_or_a_parser_nothing_is_judged(facts: dict[str, object]) -> None:
    assert derive(facts) == {}


@pytest.mark.parametrize(
    ("name", "template", "fits"),
    [
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", None, True),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", None, False),
        ("Qwen/Qwen3.5-4B", None, False),
        ("Qwen/Qwen3.5-397B-A17B", None, True),
        ("Qwen/Qwen3-8B", False, False),
        ("Qwen/Qwen3-8B", True, True),
    ],
)
def test_no_reasoning_parser_fits_a_model_that_does_not_think(name: str, template: bool | None, fits: bool) -> None:
    facts = {"model.family": "qwen3", "model.name": name, "model.chat_template_has_think": template}
    found = derive({**facts, REASONING: "qwen3"})
    assert found["launch.reasoning_parser_fits"] is fits
    assert (found["launch.reasoning_parser_wanted"] == "none") is not fits
    assert derive(facts) == {}


def test_every_family_and_parser_of_the_tables_exists() -> None:
    families = {name for name, _ in _FAMILIES}
    assert {*_TOOLS, *_REASONING} <= families
    for table, flag in ((_TOOLS, "tool-call-parser"), (_REASONING, "reasoning-parser")):
        known = {str(choice) for version in ("0.5.9", "0.5.23") for choice in load(version).by_name[flag].choices or ()}
        assert {parser for parsers in table.values() for parser in parsers} <= known


@pytest.mark.parametrize(
    ("parser", "family", "fits"),
    [("qwen3", "qwen3", False), ("gpt-oss", "gpt-oss", True), ("mistral", "mistral", True)],
)
def test_a_template_without_think_is_about_parsers_that_look_for_think(parser: str, family: str, fits: bool) -> None:
    facts = {REASONING: parser, "model.family": family, "model.chat_template_has_think": False}
    assert derive(facts)["launch.reasoning_parser_fits"] is fits

"""`launch explain`: one page for each id that a finding or verdict names, and a suggestion for any other."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import Cli, on_a_terminal


def test_every_listed_id_can_be_read_back(cli: Cli) -> None:
    code, out, _ = cli("explain")
    ids = out.splitlines()
    assert (code, json.loads(cli("explain", "--json")[1])) == (0, ids)
    assert {"trtllm-moe-on-sm120", "prose"} <= set(ids)
    assert len(set(ids)) == len(ids)
    assert [cli("explain", name)[0] for name in (ids[0], ids[-1])] == [0, 0]


@pytest.mark.parametrize("slug", ["trtllm-moe-on-sm120", "prose"])
def test_a_page_is_the_same_for_people_and_programs(cli: Cli, slug: str) -> None:
    code, page, err = cli("explain", slug)
    assert (code, err, page.startswith("# ")) == (0, "", True)
    assert json.loads(cli("explain", slug, "--json")[1]) == {"id": slug, "page": page}


def test_a_typing_error_gets_a_suggestion(cli: Cli) -> None:
    code, out, err = cli("explain", "trtllm-moe-on-sm12")
    assert (code, out, "did you mean `trtllm-moe-on-sm120`" in err) == (2, "", True)


@pytest.mark.parametrize("slug", ["qqqqqqqqqqqq", "../README", "CUDA OOM é"])
def test_an_unknown_id_leads_to_the_list(cli: Cli, slug: str) -> None:
    code, out, err = cli("explain", slug)
    assert (code, out, f"has the id `{slug}`" in err) == (2, "", True)
    assert "`launch explain` lists all ids" in err


def test_a_terminal_shows_the_page_without_its_marks(cli: Cli) -> None:
    shown = on_a_terminal("launch", "explain", "trtllm-moe-on-sm120")
    assert "\x1b[" in shown and "trtllm-moe-on-sm120" in shown
    assert "# " not in shown and "**" not in shown

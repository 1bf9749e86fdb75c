"""From a message or a frame to the statement in the engine that raised it, and its conditions."""

from __future__ import annotations

import pytest

from checks.engine.flag_schema import available
from checks.engine.raise_sites import SiteTable, at_frame, inside_package, literals, lookup, table
from checks.engine.release_rows import recorded
from checks.engine.source.sites import ANCHOR_DIGITS, Site, row
from tests.support.paths import ROOT

NO_BUFFER = (
    "ValueError: Speculative decoding for Qwen3_5MoeForConditionalGeneration is not compatible with radix cache when "
    "using --mamba-scheduler-strategy no_buffer.To use radix cache with speculative decoding, please use "
    "--mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1."
)


def test_a_message_leads_to_the_line_that_raised_it() -> None:
    site = lookup("0.5.10", NO_BUFFER)[0]
    assert (site.where, site.kind, site.exact) == ("srt/server_args.py:2206", "ValueError", True)
    assert "not self.disable_radix_cache" in site.conditions


def test_a_development_build_is_answered_from_the_nearest_release() -> None:
    site = lookup("0.5.10.post1.dev3+gabc", NO_BUFFER)[0]
    assert (site.release, site.exact) == ("0.5.10", False)


def test_a_message_of_another_release_is_not_found() -> None:
    assert lookup("0.5.9", NO_BUFFER) == ()


@pytest.mark.parametrize(
    ("version", "file", "line", "function"),
    [
        ("0.5.9", "srt/server_args.py", 2423, "_handle_speculative_decoding"),
        ("0.5.10", "srt/server_args.py", 3055, "_handle_speculative_decoding"),
        ("0.5.14", "srt/arg_groups/speculative_hook.py", 320, ""),
        ("0.5.23", "srt/arg_groups/speculative_hook.py", 1161, ""),
    ],
)
def test_a_bare_assert_is_found_by_its_frame(version: str, file: str, line: int, function: str) -> None:
    path = f"/root/venv/lib/python3.12/site-packages/sglang/{file}"
    site = at_frame(version, path, line, function)
    assert site is not None
    assert (site.kind, site.message) == ("assert", "")
    assert any("speculative_num_steps is None" in condition for condition in site.conditions)
    assert "speculative_eagle_topk is None" in site.conditions[-1]


def test_a_line_that_raises_nothing_has_no_site() -> None:
    assert at_frame("0.5.10", "/x/sglang/srt/server_args.py", 1, "") is None


def test_a_frame_of_a_development_build_takes_the_nearest_line_of_its_function() -> None:
    site = at_frame("0.5.10.post1.dev3", "/x/sglang/srt/server_args.py", 3061, "_handle_speculative_decoding")
    assert site is not None
    assert site.function == "ServerArgs._handle_speculative_decoding"
    assert not site.exact


@pytest.mark.parametrize("version", recorded("sites"))
def test_the_sites_of_every_recorded_release_can_be_read(version: str) -> None:
    sites = table(version)
    assert len(sites.rows) > 2000
    assert any(line.startswith("srt/server_args.py\t", ANCHOR_DIGITS) for line in sites.rows)
    for line in sites.rows:
        assert int(line[:4], 16) + int(line[4:7], 16) <= len(line)
        assert line[ANCHOR_DIGITS:].split("\t")[1].isdigit()


def test_every_numbered_release_is_recorded() -> None:
    assert set(recorded("sites")) == {v for v in available() if ".post" not in v}


def test_the_most_specific_template_comes_first() -> None:
    rows = [
        row(Site("ValueError", "{x} is not supported on this platform", (), "a", "srt/a.py", 1, 1)),
        row(Site("ValueError", "Backend {x} is not supported on this platform yet", (), "b", "srt/b.py", 2, 2)),
    ]
    found = SiteTable(release="9.9", exact=True, rows=tuple(rows)).lookup(
        "Backend fa3 is not supported on this platform yet"
    )
    assert [site.function for site in found] == ["b", "a"]


def test_the_exception_named_in_the_log_is_preferred() -> None:
    rows = [
        row(Site("warning", "page size {x} is too large", (), "warns", "srt/a.py", 1, 1)),
        row(Site("ValueError", "page size {x} is too large", (), "raises", "srt/a.py", 9, 9)),
    ]
    found = SiteTable(release="9.9", exact=True, rows=tuple(rows)).lookup(
        "page size 64 is too large", kind="ValueError"
    )
    assert [site.function for site in found] == ["raises"]


def test_a_template_with_its_pieces_in_another_order_does_not_match() -> None:
    rows = [row(Site("ValueError", "first piece {x} second piece", (), "f", "srt/a.py", 1, 1))]
    assert SiteTable(release="9.9", exact=True, rows=tuple(rows)).lookup("second piece 1 first piece") == ()


def test_literal_braces_and_line_breaks_do_not_matter() -> None:
    rows = [row(Site("ValueError", "expected {{'a': 1}} but found {x} in the file", (), "f", "srt/a.py", 1, 1))]
    found = SiteTable(release="9.9", exact=True, rows=tuple(rows)).lookup(
        "expected {'a': 1} but\n   found nothing in the file"
    )
    assert [site.function for site in found] == ["f"]


def test_a_template_without_a_telling_literal_never_fits() -> None:
    rows = [row(Site("ValueError", "{a}: {b}", (), "f", "srt/a.py", 1, 1))]
    assert SiteTable(release="9.9", exact=True, rows=tuple(rows)).lookup("anything: at all") == ()


def test_a_template_that_was_cut_off_fits_up_to_the_cut() -> None:
    assert literals("a literal {x} and its end…") == ["a literal", "and its end"]


def test_the_package_part_of_a_path_is_what_counts() -> None:
    assert inside_package("/root/sglang-main/python/sglang/srt/server_args.py") == "srt/server_args.py"


def test_the_site_files_are_smaller_than_two_megabytes() -> None:
    folder = ROOT / "checks" / "knowledge" / "engines" / "sglang" / "sites"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2 << 20

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from checks.catalog import entries
from checks.catalog.yaml_reader import YamlError
from checks.during import matching, signature_build
from checks.during.log.incidents import incidents
from checks.during.log.lines import parse
from checks.during.log.scan import scan
from checks.during.matching import Hit
from checks.during.signature_index import Index, decode, encode
from checks.vocabulary import Role
from tests.support.paths import CORPUS

TRACE = """[2026-11-29 15:25:03 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/a/sglang/srt/x.py", line 1, in load_model
KeyError: 'alpha'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/a/sglang/srt/y.py", line 1, in wrap
ValueError: beta 17 of gamma
"""


def index_of(tmp_path: Path, **causes: str) -> Index:
    for name, during in causes.items():
        folder = tmp_path / "causes" / name
        folder.mkdir(parents=True)
        (folder / "cause.yaml").write_text(f"title: {name}\nduring:\n{during}")
    return signature_build.build(tmp_path)


def find(index: Index, text: str, **facts: Any) -> list[Hit]:
    lines = [line for number, raw in enumerate(text.encode().split(b"\n"), 1) for line in parse(raw, number)]
    return matching.find(incidents(lines), index, {name.replace("__", "."): value for name, value in facts.items()})


def names(hits: list[Hit]) -> set[str]:
    return {hit.rule.entry for hit in hits}


def test_all_regexes_must_match_in_one_incident(tmp_path: Path) -> None:
    index = index_of(
        tmp_path,
        both="  - all: ['in load_model', '^ValueError: beta \\d+']\n",
        apart="  - all: ['in load_model', 'elsewhere']\n",
    )
    assert names(find(index, TRACE + "[2026-11-29 15:25:04] elsewhere\n")) == {"both"}


def test_anywhere_is_found_outside_the_incident(tmp_path: Path) -> None:
    index = index_of(tmp_path, far="  - all: ['^ValueError: beta']\n    anywhere: ['elsewhere']\n")
    assert names(find(index, TRACE + "[2026-11-29 15:25:04] elsewhere\n")) == {"far"}
    assert not find(index, TRACE)


def test_without_excludes_an_incident(tmp_path: Path) -> None:
    index = index_of(tmp_path, pure="  - all: ['^ValueError']\n    without: ['alpha']\n")
    assert not find(index, TRACE)
    assert names(find(index, TRACE.replace("alpha", "other"))) == {"pure"}


def test_an_unknown_fact_prevents_a_match(tmp_path: Path) -> None:
    index = index_of(tmp_path, sm="  - all: ['^ValueError']\n    when: {host.sm: 120}\n")
    assert not find(index, TRACE)
    assert names(find(index, TRACE, host__sm=120)) == {"sm"}
    assert not find(index, TRACE, host__sm=90)


def test_a_pattern_speaks_for_its_releases(tmp_path: Path) -> None:
    index = index_of(tmp_path, old="  - all: ['^ValueError']\n    engine: '<0.5.10'\n")
    assert names(find(index, TRACE, engine__version="0.5.9")) == {"old"}
    assert not find(index, TRACE, engine__version="0.5.10")
    assert names(find(index, TRACE)) == {"old"}


def test_named_groups_are_captured(tmp_path: Path) -> None:
    [hit] = find(index_of(tmp_path, one="  - all: ['^ValueError: beta (?P<number>\\d+) of']\n"), TRACE)
    assert hit.captures == {"number": "17"}
    assert [item.line for item in hit.evidence] == [9]


def test_the_root_of_a_chain_is_more_decisive_than_its_wrapper(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, wrapper="  - all: ['^ValueError: beta 17 of gamma']\n", root='  - all: ["^KeyError: \'al"]\n'
    )
    assert max(find(index, TRACE), key=lambda hit: hit.decisiveness).rule.entry == "root"


def test_weight_outranks_the_root(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, wrapper="  - all: ['^ValueError: beta']\n    weight: decisive\n", root="  - all: ['^KeyError']\n"
    )
    assert max(find(index, TRACE), key=lambda hit: hit.decisiveness).rule.entry == "wrapper"


def test_observed_facts_need_no_log_text(tmp_path: Path) -> None:
    index = index_of(tmp_path, odd="  - when: {observed.kind: repeated-token, flag.x: '1'}\n")
    [hit] = find(index, TRACE, observed__kind="repeated-token", flag__x="1")
    assert (hit.incident, hit.lines) == (-1, ())


def test_a_pattern_that_would_always_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match=r"causes/odd/cause.yaml:3:5"):
        index_of(tmp_path, odd="  - when: {flag.x: '1'}\n")


def test_a_malformed_regex_names_its_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match=r"causes/odd/cause.yaml:3:"):
        index_of(tmp_path, odd="  - all: ['a(b']\n")


@pytest.fixture(scope="module")
def judge() -> Index:
    return signature_build.build()


def test_the_index_survives_being_written_down(judge: Index) -> None:
    again = decode(encode(judge))
    assert replace(again, advices={}) == replace(judge, advices={})
    assert len(again.rules) > 100


def test_without_literals_the_same_is_found(judge: Index) -> None:
    slow = replace(judge, needs=dict.fromkeys(judge.needs, ()))  # every regex is tried on every line
    small = [path for path in sorted(CORPUS.rglob("*.log")) if path.stat().st_size < 30_000]
    for path in small[::4]:
        found = incidents(scan([path.read_bytes()], judge.words).lines)
        expected = {(hit.rule.entry, hit.incident) for hit in matching.find(found, slow, {})}
        assert {(hit.rule.entry, hit.incident) for hit in matching.find(found, judge, {})} == expected


def test_the_advice_on_a_cause_survives_encoding(judge: Index) -> None:
    again = decode(encode(judge))
    for entry in entries.entries():
        if entry.role is Role.CAUSE:
            said = again.advice(entry.id)
            assert (said.why, said.remedies) == (entry.why, entry.remedies)

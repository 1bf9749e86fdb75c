import json
from pathlib import Path

import pytest

from checks.before import rule_index
from checks.catalog.entries import entries
from checks.catalog.yaml_reader import YamlError
from launcher import knowledge_cache


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "knowledge"
    (root / "causes" / "one").mkdir(parents=True)
    (root / "causes" / "one" / "cause.yaml").write_text("title: one\nduring:\n  - all: [first words]\n")
    return root


def test_the_second_call_reads_the_cache(root: Path, tmp_path: Path) -> None:
    first = knowledge_cache.index(root, tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    document = json.loads(path.read_text())
    document["log"]["words"] = {"texts": ["from the cache"]}
    path.write_text(json.dumps(document))
    assert knowledge_cache.index(root, tmp_path / "cache").words.texts == ("from the cache",)
    assert first.rules[0].all == ("first words",)


def test_a_changed_entry_builds_a_new_document_and_removes_the_old_one(root: Path, tmp_path: Path) -> None:
    knowledge_cache.index(root, tmp_path / "cache")
    (root / "causes" / "one" / "cause.yaml").write_text("title: one\nduring:\n  - all: [quite other words]\n")
    assert knowledge_cache.index(root, tmp_path / "cache").rules[0].all == ("quite other words",)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_changed_fragment_is_read_again(root: Path, tmp_path: Path) -> None:
    (root / "causes" / "one" / "cause.yaml").write_text("title: one\nduring:\n  - all: ['x {watchdog}']\n")
    assert "atchdog" in knowledge_cache.index(root, tmp_path / "cache").rules[0].all[0]
    (root / "fragments.yaml").write_text("watchdog: {pattern: other words, meaning: m}\n")
    assert knowledge_cache.index(root, tmp_path / "cache").rules[0].all == ("x (?:other words)",)


def test_a_broken_cache_is_rebuilt(root: Path, tmp_path: Path) -> None:
    knowledge_cache.index(root, tmp_path / "cache")
    [path] = (tmp_path / "cache").iterdir()
    for damage in ("", "[]", '{"rules": 3}', "\x00"):
        path.write_text(damage)
        assert knowledge_cache.index(root, tmp_path / "cache").rules[0].all == ("first words",)


def test_a_cache_that_cannot_be_written_is_ignored(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert knowledge_cache.index(root, tmp_path / "file" / "cache").rules


def test_a_malformed_entry_is_reported_with_its_line(root: Path, tmp_path: Path) -> None:
    (root / "causes" / "one" / "cause.yaml").write_text("title: one\nduring:\n  - al: [x]\n")
    with pytest.raises(YamlError, match=r"causes/one/cause.yaml:3:5: unknown key `al`"):
        knowledge_cache.index(root, tmp_path / "cache")


def test_logs_and_launches_share_one_document(root: Path, tmp_path: Path) -> None:
    cause = root / "causes" / "one" / "cause.yaml"
    rule = "before:\n  - {when: {flag.tp-size: '8'}, severity: error, message: 'eight', engine: '>=0.5.1'}\n"
    cause.write_text(cause.read_text() + rule)
    assert knowledge_cache.index(root, tmp_path / "cache").rules
    [loaded] = knowledge_cache.rules(root, tmp_path / "cache")
    [built] = rule_index.of_entries(entries(root))
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert loaded.before[0].when.holds({"flag.tp-size": "8"}) and not loaded.before[0].when.holds({"flag.tp-size": "4"})
    assert (loaded.before[0].message, loaded.before[0].engine) == (built.before[0].message, built.before[0].engine)


def test_changed_code_builds_a_new_document(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "checks"
    (code / "catalog").mkdir(parents=True)
    (code / "catalog" / "entries.py").write_text("one = 1\n")
    monkeypatch.setattr(knowledge_cache, "_CODE", code)
    knowledge_cache.index(root, tmp_path / "cache")
    [first] = (tmp_path / "cache").iterdir()
    (code / "catalog" / "entries.py").write_text("one = 11\n")
    knowledge_cache.index(root, tmp_path / "cache")
    [second] = (tmp_path / "cache").iterdir()
    assert first.name != second.name


def test_one_process_decodes_a_document_once(root: Path, tmp_path: Path) -> None:
    knowledge_cache.index(root, tmp_path / "cache")
    assert knowledge_cache.index(root, tmp_path / "cache") is knowledge_cache.index(root, tmp_path / "cache")
    assert knowledge_cache.rules(root, tmp_path / "cache") is knowledge_cache.rules(root, tmp_path / "cache")

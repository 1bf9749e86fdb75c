"""Profiles: inheritance, origins, and errors that point at the character."""

from pathlib import Path

import pytest

from launcher.errors import ProfileError, UsageError
from launcher.profile.resolve import override, resolve


def write(folder: Path, **files: str) -> tuple[Path, ...]:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return (folder,)


def test_child_overrides_parent_and_every_value_knows_its_line(tmp_path: Path) -> None:
    folders = write(
        tmp_path,
        _base__a="flags:\n  tp-size: 8\n  page-size: {value: 16, why: big pages}\n",
        b="extends: _base/a\nflags:\n  tp-size: 4\n",
    )
    profile = resolve("b", folders)
    assert profile.flags["tp-size"].value == "4"
    assert profile.flags["tp-size"].where.endswith("b.yaml:3:3")
    assert profile.flags["page-size"].why == "big pages"
    assert profile.flags["page-size"].where.endswith("_base/a.yaml:3:3")


def test_later_parent_wins_over_earlier(tmp_path: Path) -> None:
    folders = write(tmp_path, a="flags: {x: 1}", b="flags: {x: 2}", c="extends: [a, b]")
    assert resolve("c", folders).flags["x"].value == "2"


def test_null_removes_a_flag_of_the_parent(tmp_path: Path) -> None:
    folders = write(tmp_path, a="flags: {x: 1, y: 2}\nenv: {A: '1'}", b="extends: a\nflags: {x: null}\nenv: {A: null}")
    profile = resolve("b", folders)
    assert list(profile.flags) == ["y"]
    assert not profile.env


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("flagz: {}", ":1:1", "unknown profile key `flagz`", "`flags`"),
        ("flags:\n  a: 1\n  a: 2\n", ":3:3", "duplicate key `a` (first on line 2)", ""),
        ("flags: [1]", ":1:8", "expected a mapping, found a list", ""),
        ("extends: nobody", ":1:10", "no profile named `nobody`", ""),
        ("extends: p", ":1:1", "forms a cycle", ""),
        ("engine: yes please", ":1:9", "is not a version range", "'>=0.5.10,<0.5.20'"),
        ("flags: {a: {b: 1}}", ":1:13", "unknown key `b`", ""),
        ("flags: {a: null}", ":1:9", "no parent profile sets `a`", ""),
        ("flags:\n  api-key: abc", ":2:12", "is a secret", "env:NAME"),
        ("env: {HF_TOKEN: abc}", ":1:17", "looks like a secret", "secret: true"),
        ("accept: [{id: x}]", ":1:10", "`reason` is missing", ""),
        ("accept: [{id: x, reason: y, until: soon}]", ":1:36", "is not a date", "2027"),
        ("model: {pth: x}", ":1:9", "unknown key `pth`", "`path`"),
        ("a: [1, 2", ":2:1", "expected", ""),
        ("\tflags: {}", ":1:1", "cannot start any token", ""),
    ],
)
def test_faults_are_shown_with_file_line_and_column(
    tmp_path: Path, text: str, where: str, message: str, hint: str
) -> None:
    folders = write(tmp_path, p=text)
    with pytest.raises(ProfileError) as caught:
        resolve("p", folders)
    assert caught.value.where.endswith(f"p.yaml{where}")
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("junk", [b"\xff\xfe\x00\x01", b"\x00" * 100, b"!!python/object/apply:os.system ['true']", b""])
def test_junk_is_an_error_or_empty_but_never_a_traceback(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "p.yaml").write_bytes(junk)
    try:
        profile = resolve("p", (tmp_path,))
    except ProfileError:
        return
    assert not profile.flags


def test_a_misspelt_name_suggests_the_right_one(tmp_path: Path) -> None:
    folders = write(tmp_path, nextn="flags: {}")
    with pytest.raises(UsageError) as caught:
        resolve("nxtn", folders)
    assert "`nextn`" in caught.value.hint


def test_digest_ignores_comments_and_formatting_and_follows_values(tmp_path: Path) -> None:
    folders = write(
        tmp_path, a="flags: {x: 1, y: 2}", b="# note\nflags:\n  y: 2   # two\n  x: 1\n", c="flags: {x: 1, y: 3}"
    )
    digests = [resolve(name, folders).digest for name in "abc"]
    assert digests[0] == digests[1] != digests[2]


def test_command_line_overrides_and_their_types(tmp_path: Path) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {x: 1, y: 2}"))
    changed = override(profile, ["x=16k", "bs=[1, 2]", "switch", "--under_score=v"], ["y"], ["A=b"])
    values = {name: item.value for name, item in changed.flags.items()}
    assert values == {"x": "16k", "bs": ["1", "2"], "switch": True, "under-score": "v"}
    assert changed.env["A"].value == "b"


def test_a_secret_on_the_command_line_is_refused_unless_only_its_name_is_passed(tmp_path: Path) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {x: 1}"))
    with pytest.raises(UsageError, match="visible to every user"):
        override(profile, [], [], ["HF_TOKEN=abc"])
    with pytest.raises(UsageError, match="visible to every user"):
        override(profile, ["api-key=abc"], [], [])
    assert override(profile, [], [], ["HF_TOKEN"]).env["HF_TOKEN"].secret
    assert override(profile, ["api-key=env:K"], [], []).flags["api-key"].value == "env:K"


def test_unset_of_a_flag_that_is_not_set_is_an_error(tmp_path: Path) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {page-size: 1}"))
    with pytest.raises(UsageError) as caught:
        override(profile, [], ["page-sise"], [])
    assert "`page-size`" in caught.value.hint


def test_yaml_1_1_surprises_stay_text(tmp_path: Path) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {a: NO, b: 12:30:45, c: 0777, d: 1e3, e: on, f: 2026-01-01}"))
    assert [item.value for item in profile.flags.values()] == ["NO", "12:30:45", "0777", "1e3", "on", "2026-01-01"]

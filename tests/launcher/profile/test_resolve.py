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
        ("extends: nobody", ":1:10", "no profile named `nobody`", ""),
        ("extends: p", ":1:1", "forms a cycle", ""),
        ("flags: {a: null}", ":1:9", "no parent profile sets `a`", ""),
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


@pytest.mark.parametrize("text", ["=x", "", "A B=1", "A;touch x=1", "Ü=1", "1A=x", "A\n=1"])
def test_a_variable_whose_name_no_shell_accepts_is_a_usage_error(tmp_path: Path, text: str) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {x: 1}"))
    with pytest.raises(UsageError, match="expected NAME=VALUE"):
        override(profile, [], [], [text])


def test_the_value_of_a_variable_may_contain_anything(tmp_path: Path) -> None:
    profile = resolve("a", write(tmp_path, a="flags: {x: 1}"))
    assert override(profile, [], [], ["A=b=c; d\n"]).env["A"].value == "b=c; d\n"

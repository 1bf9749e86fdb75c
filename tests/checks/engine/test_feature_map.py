"""From a place in the engine to the settings that lead there, by the shipped maps."""

from __future__ import annotations

import pytest

from checks.engine.feature_map import load, plain, words_of
from checks.engine.release_rows import recorded


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("srt/layers/attention/flashmla_backend.py", "flashmla"),
        ("srt/layers/attention/flashattention_backend.py", "fa3"),
        ("srt/constrained/outlines_backend.py", "outlines"),
        ("srt/layers/quantization/gguf.py", "gguf"),
        ("srt/speculative/ngram_worker.py", "ngram"),
    ],
)
def test_a_file_knows_the_values_that_select_it(file: str, value: str) -> None:
    assert value in load("0.5.11").values[file]


@pytest.mark.parametrize("release", recorded("features"))
def test_each_release_maps_attention_backends_and_readers(release: str) -> None:
    features = load(release)
    assert features.exact
    assert "flashinfer" in features.values["srt/layers/attention/flashinfer_backend.py"]
    assert features.uses["attention_backend"] > 0


def test_a_frame_is_found_by_function_and_line() -> None:
    features = load("0.5.11")
    file = "srt/server_args.py"
    reader = next(item for item in features.readers[file] if "enable_lora" in item.settings)
    name = reader.function.rsplit(".", 1)[-1]
    assert "enable_lora" in features.settings_at(file, reader.line, name)
    assert features.settings_at(file, reader.line, "no_such_function") == frozenset()
    assert features.settings_at("srt/absent.py", 1, "f") == frozenset()


def test_in_another_release_the_line_does_not_count() -> None:
    features = load("0.5.11.post7")
    reader = features.readers["srt/server_args.py"][0]
    name = reader.function.rsplit(".", 1)[-1]
    assert not features.exact
    assert features.settings_at("srt/server_args.py", 10**6, name)


def test_a_rare_word_tells_more_than_a_common_one() -> None:
    features = load("0.5.11")
    assert features.rarity("unheard") == 1
    assert features.rarity("flashmla") > features.rarity("attention") > features.rarity("srt")
    assert features.distinctness("tp_size") < features.distinctness("speculative_num_steps") <= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FlashMLABackend", ["flashmlabackend", "flash", "mla", "backend"]),
        ("tp_size", ["tp", "size"]),
        ("srt/layers/x.py", ["srt", "layers", "x", "py"]),
        ("", []),
    ],
)
def test_names_are_cut_into_words(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words


def test_a_value_is_compared_without_separators() -> None:
    assert plain("trtllm-mha") == plain("TRTLLM_mha") == "trtllmmha"

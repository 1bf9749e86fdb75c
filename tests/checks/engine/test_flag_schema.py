"""Schemas of releases: which schema is used for a version, and flag names of every era."""

from __future__ import annotations

import pytest

from checks.engine.flag_schema import available, from_document, load, nearest
from checks.engine.source.program import describe
from checks.engine.source.tree import from_root

ERAS = ("0.4.10", "0.5.9", "0.5.13", "0.5.16", "0.5.20", "0.5.23")


@pytest.mark.parametrize("version", available())
def test_every_release_loads_exactly(version: str) -> None:
    schema = load(version)
    assert (schema.version, schema.exact, schema.note) == (version, True, "")
    assert schema.by_name["model-path"].required
    assert "LlamaForCausalLM" in schema.architectures
    assert any(line.startswith("transformers") for line in schema.requirements)


@pytest.mark.parametrize("asked", ["0.5.9.post7", "0.6.0", "main", ""])
def test_a_schema_used_for_another_version_has_a_note(asked: str) -> None:
    schema = load(asked)
    release, note = nearest(asked)
    assert (schema.version, schema.exact, schema.note) == (release, False, note)


def test_a_unique_prefix_resolves_to_the_option() -> None:
    found = load("0.5.9").find("tp")
    assert (found.kind, found.name) == ("abbreviation", "tp-size")


def test_a_beginning_of_several_options_is_ambiguous() -> None:
    found = load("0.5.9").find("pp")
    assert found.kind == "ambiguous"
    assert set(found.candidates) == {"pp-size", "pp-max-micro-batch-size", "pp-async-batch-depth"}


def test_two_names_of_one_option_make_a_beginning_ambiguous_as_in_argparse() -> None:
    assert load("0.5.23").find("enable-hi").kind == "ambiguous"


def test_an_exact_name_wins_over_longer_ones() -> None:
    assert load("0.5.9").find("ep").kind == "exact"


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("tensor-parallel-size", "tp-size"),
        ("tp", "tp-size"),
        ("model", "model-path"),
        ("mamba-scheduler-strategy", "mamba-radix-cache-strategy"),
        ("cuda-graph-max-bs", "cuda-graph-max-bs-decode"),
        ("nsa-prefill-backend", "dsa-prefill-backend"),
        ("piecewise-cuda-graph-max-tokens", "cuda-graph-max-bs-prefill"),
        ("speculative-algo", "speculative-algorithm"),
        ("speculative-draft-model", "speculative-draft-model-path"),
        ("fp8-gemm-backend", "fp8-gemm-backend"),
        ("torchao-config", "torchao-config"),
    ],
)
def test_a_name_of_any_era_has_one_canonical_name(version: str, typed: str, canonical: str) -> None:
    assert load(version).canonical(typed) == canonical


def test_an_unknown_name_has_no_canonical_name() -> None:
    assert load("0.5.9").canonical("no-such-flag-at-all") is None


@pytest.mark.parametrize(
    ("version", "here"),
    [
        ("0.5.6", None),
        ("0.5.7", "mamba-scheduler-strategy"),
        ("0.5.13", "mamba-scheduler-strategy"),
        ("0.5.14", "mamba-radix-cache-strategy"),
        ("0.5.23", "mamba-radix-cache-strategy"),
    ],
)
@pytest.mark.parametrize("typed", ["mamba-scheduler-strategy", "mamba-radix-cache-strategy"])
def test_a_rename_is_spelled_for_the_release_both_ways(version: str, here: str | None, typed: str) -> None:
    assert load(version).spell(typed) == here


def test_a_name_the_release_takes_stays_as_it_is() -> None:
    assert load("0.5.9").spell("tensor-parallel-size") == "tensor-parallel-size"


def test_an_abbreviation_is_spelled_out() -> None:
    assert load("0.5.9").spell("tp") == "tp-size"


def test_an_ambiguous_abbreviation_is_not_spelled() -> None:
    assert load("0.5.10").spell("pp") is None


@pytest.mark.parametrize("version", available())
def test_canonical_names_spell_back_to_themselves(version: str) -> None:
    schema = load(version)
    for flag in schema.flags:
        canonical = schema.canonical(flag.names[0])
        assert canonical is not None
        assert schema.canonical(schema.spell(canonical) or "") == canonical


def test_sgl_names_count_where_the_release_rewrites_them() -> None:
    assert load("0.5.9").environment.knows("SGL_ENABLE_JIT_DEEPGEMM")
    assert not load("0.5.9").environment.knows("SGL_NO_SUCH_VARIABLE")


def test_a_host_document_becomes_a_schema(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "sglang" / "srt"
    folder.mkdir(parents=True)
    source = (
        "class ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n"
        "        parser.add_argument('--model-path', '--model', required=True)\n"
        "        parser.add_argument('--brand-new', action='store_true')\n"
    )
    (folder / "server_args.py").write_text(source, encoding="utf-8")
    (folder / "environ.py").write_text("class Envs:\n    SGLANG_NEW = EnvBool(True)\n", encoding="utf-8")
    schema = from_document(describe(from_root(str(tmp_path))), asked="0.7.0.dev1")
    assert schema.exact
    assert schema.by_name["brand-new"].is_switch
    assert schema.canonical("brand-new") == "brand-new"
    assert schema.environment.types == {"SGLANG_NEW": "EnvBool"}

"""Schemas of releases: which one stands in for a version, names of every era, renames, what an upgrade changes."""

from __future__ import annotations

import pytest

from checks.before.upgrade import diff, diff_for
from checks.engine.flag_history import flag_span, spellings_of, successors, variable_span
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


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("0.5.10.post1.dev12+gabc", "0.5.10"),
        ("0.5.11.dev5+g1234567", "0.5.11"),
        ("0.5.20.dev0", "0.5.20"),
        ("0.5.9.post7", "0.5.9"),
        ("0.5.6.post3", "0.5.6.post2"),
        ("0.6.0", available()[-1]),
        ("0.3.0", "0.4.10"),
        ("0.0.0.dev1+g0123456", available()[-1]),
        ("main", available()[-1]),
        ("", available()[-1]),
    ],
)
def test_an_unrecorded_version_takes_the_nearest_release_and_says_so(asked: str, taken: str) -> None:
    schema = load(asked)
    assert schema.version == taken
    assert not schema.exact
    assert taken in schema.note


def test_a_recorded_version_needs_no_note() -> None:
    assert nearest("0.5.9") == ("0.5.9", "")


def test_a_unique_beginning_stands_for_the_option() -> None:
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


def test_a_name_nobody_knows_has_no_canonical_name() -> None:
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


@pytest.mark.parametrize("entry", successors().values(), ids=successors())
def test_the_table_of_renames_agrees_with_the_schemas(entry: object) -> None:
    from checks.engine.flag_history import Successor

    assert isinstance(entry, Successor)
    span = flag_span(entry.old)
    assert span is not None
    assert entry.removed == span.gone
    warned = [v for v in available() if _deprecated(v, entry.old)]
    assert entry.deprecated == (warned[0] if warned else None)
    for target in [entry.new, *entry.set]:
        assert target is None or load(entry.since or span.gone or "").spell(target)


def test_every_option_that_warned_before_it_went_is_in_the_table() -> None:
    newest = load()
    gone = {n for v in available() for n, f in load(v).by_name.items() if f.deprecated and n not in newest.by_name}
    assert gone <= set(successors())


def test_the_history_agrees_with_the_schemas() -> None:
    for name in ("torchao-config", "enable-beta-spec", "attn-dp-size"):
        having = [v for v in available() if name in load(v).by_name]
        span = flag_span(name)
        assert span is not None
        assert (span.first, span.last) == (having[0], having[-1])


def test_a_variable_has_a_span() -> None:
    span = variable_span("SGLANG_ENABLE_SPEC_V2")
    assert span is not None
    assert load(span.first).environment.knows("SGLANG_ENABLE_SPEC_V2")
    assert not load(span.gone or "").environment.knows("SGLANG_ENABLE_SPEC_V2")


def test_spellings_are_listed_newest_first() -> None:
    assert spellings_of("mamba-radix-cache-strategy") == ("mamba-radix-cache-strategy", "mamba-scheduler-strategy")


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


def test_a_rename_is_no_removal() -> None:
    changes = {(c.kind, c.flag) for c in diff(load("0.5.13"), load("0.5.14"))}
    assert ("renamed", "mamba-radix-cache-strategy") in changes
    assert not {("removed", "mamba-radix-cache-strategy"), ("added", "mamba-radix-cache-strategy")} & changes


def test_a_changed_default_is_told() -> None:
    changes = [c for c in diff(load("0.5.7"), load("0.5.8")) if c.flag == "load-balance-method" and c.kind == "default"]
    assert [(c.before, c.after) for c in changes] == [("round_robin", "auto")]


def test_changed_choices_are_told() -> None:
    changes = [c for c in diff(load("0.5.19"), load("0.5.20")) if c.flag == "attention-backend"]
    assert [(c.kind, c.before, c.after) for c in changes] == [("choices", "cutlass_mla, dual_chunk_flash_attn", "qsa")]


def test_an_upgrade_is_judged_for_the_flags_of_one_launch() -> None:
    flags = {"model-path": "m", "tp": "8", "mamba-scheduler-strategy": "extra_buffer"}
    changes, findings = diff_for(flags, load("0.5.19"), load("0.5.20"))
    assert {c.flag for c in changes} <= {"model-path", "tp-size", "mamba-radix-cache-strategy"}
    assert [f.id for f in findings] == ["flag-removed-or-renamed"]


def test_an_upgrade_to_the_same_release_changes_nothing() -> None:
    assert diff(load("0.5.9"), load("0.5.9")) == []


def _deprecated(version: str, name: str) -> bool:
    flag = load(version).by_name.get(name)
    return flag is not None and flag.deprecated

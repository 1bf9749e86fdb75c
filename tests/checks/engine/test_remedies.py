from checks.engine.remedies import fitting
from checks.vocabulary import EngineRange, Remedy

FACTS = {"engine.version": "0.5.10", "host.sm": 90}


def test_a_remedy_of_another_release_is_left_out() -> None:
    remedies = [Remedy(text="new", engine=EngineRange(">=0.5.14")), Remedy(text="old", engine=EngineRange("<0.5.14"))]
    assert [item.text for item in fitting(remedies, FACTS, {})] == ["old"]


def test_a_remedy_whose_condition_is_not_known_to_hold_is_left_out() -> None:
    remedies = [
        Remedy(text="b200", when={"host.sm": 100}),
        Remedy(text="h200", when={"host.sm": 90}),
        Remedy(text="who", when={"host.nvlink": True}),
    ]
    assert [item.text for item in fitting(remedies, FACTS, {})] == ["h200"]


def test_a_flag_is_spelled_as_the_release_has_it() -> None:
    [old] = fitting([Remedy(set={"mamba-radix-cache-strategy": "extra_buffer"})], FACTS, {})
    [new] = fitting([Remedy(set={"mamba-radix-cache-strategy": "extra_buffer"})], {"engine.version": "0.5.20"}, {})
    assert (list(old.set), list(new.set)) == (["mamba-scheduler-strategy"], ["mamba-radix-cache-strategy"])


def test_a_flag_that_the_release_does_not_have_is_never_advised() -> None:
    assert fitting([Remedy(set={"mamba-radix-cache-strategy": "extra_buffer"})], {"engine.version": "0.4.10"}, {}) == ()
    assert fitting([Remedy(set={"no-such-flag": "1"})], FACTS, {}) == ()


def test_the_old_name_is_taken_away_where_the_new_one_is_set() -> None:
    remedy = Remedy(set={"mamba-radix-cache-strategy": "x"}, unset=("mamba-scheduler-strategy",))
    [found] = fitting([remedy], {"engine.version": "0.5.20"}, {})
    assert found.unset == ("mamba-scheduler-strategy",)


def test_captured_names_are_filled_in() -> None:
    remedy = Remedy(text="drop {flag}", unset=("{flag}",), env={"A": "{value}"}, set={"tp-size": "{value}"})
    [found] = fitting([remedy], FACTS, {"flag": "bogus", "value": "4"})
    assert (found.text, found.unset, dict(found.env), found.set["tp-size"]) == (
        "drop bogus",
        ("bogus",),
        {"A": "4"},
        "4",
    )


def test_without_a_release_the_canonical_name_is_kept() -> None:
    [found] = fitting([Remedy(set={"mamba-radix-cache-strategy": "x"})], {}, {})
    assert list(found.set) == ["mamba-radix-cache-strategy"]


def test_what_only_a_later_release_has_is_not_to_be_taken_away() -> None:
    remedy = Remedy(text="x", unset=("attn-dp-size", "enable-ep-moe"))  # from 0.5.22; up to 0.5.2, typed all the same
    [found] = fitting([remedy], FACTS, {})
    assert found.unset == ("enable-ep-moe",)
    assert fitting([Remedy(unset=("attn-dp-size",))], FACTS, {}) == ()


def test_an_upgrade_that_was_made_is_not_advised() -> None:
    upgrade = Remedy(upgrade={"sglang": ">=0.5.8"})
    assert fitting([upgrade], FACTS, {}) == ()
    assert fitting([upgrade], {"engine.version": "0.5.7"}, {}) == fitting([upgrade], {}, {}) == (upgrade,)


def test_a_remedy_may_depend_on_what_the_log_names() -> None:
    remedy = Remedy(text="parser", when={"captured.flag": {"matches": "parser"}})
    assert fitting([remedy], FACTS, {"flag": "tool-call-parser"}) == (remedy,)
    assert fitting([remedy], FACTS, {"flag": "kv-cache-dtype"}) == fitting([remedy], FACTS, {}) == ()


def test_a_required_version_is_filled_in_from_the_facts() -> None:
    remedy = Remedy(require={"torch": "=={package.torch.pin}", "ninja": ""})
    [known] = fitting([remedy], {**FACTS, "package.torch.pin": "2.9.1"}, {})
    assert (known.requirements, known.install) == (("torch==2.9.1", "ninja"), 'pip install "torch==2.9.1" ninja')
    [unknown] = fitting([remedy], FACTS, {})
    assert unknown.install == 'pip install "torch==<version>" ninja'


def test_only_what_changes_something_is_an_install() -> None:
    assert Remedy(run="apt-get install gcc").install == "apt-get install gcc"
    assert Remedy(inspect="nvidia-smi").install is None
    assert Remedy(text="x").install is None

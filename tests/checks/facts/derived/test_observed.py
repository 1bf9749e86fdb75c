import pytest

from checks.facts.derived import observed


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("NaN", "nan-output"),
        ("nan in logits", "nan-output"),
        ("repeated tokens", "repeated-token"),
        ("repeated words", "repeated-word"),
        ("lower-accuracy", "accuracy-drop"),
        ("accuracy is zero", "accuracy-zero"),
        ("Gibberish", "garbled"),
        ("hangs", "hang"),
        ("tool-call-in-text", "tool-call-unparsed"),
        ("acceptance near one", "low-acceptance"),
    ],
)
def test_what_people_say_becomes_what_conditions_know(said: str, kind: str) -> None:
    assert observed.derive({"observed.kind": said}) == {"observed.kind": kind}


@pytest.mark.parametrize("kind", ["", None, "garbled", "zero-acceptance", "purple"])
def test_a_known_kind_and_one_that_says_nothing_stay(kind: str | None) -> None:
    assert observed.derive({"observed.kind": kind}) == {}

"""The editor schema accepts and rejects the same profiles as the parser."""

import json
from pathlib import Path

import jsonschema
import pytest

from checks.after.probes.expectations import KEYS, ExpectError, Kind, parse_expect
from checks.catalog.yaml_reader import YamlError, read
from checks.engine.flag_schema import load
from launcher.profile.editor_schema import profile_schema
from launcher.profile.file import parse_profile
from launcher.profile.resolve import available
from tests.support.paths import ROOT

PROFILES = ROOT / "profiles"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = profile_schema(load())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", sorted(available((PROFILES,))))
def test_every_shipped_profile_fits(name: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(read(PROFILES / f"{name}.yaml").plain())


@pytest.mark.parametrize(
    "wrong",
    [
        {"flagz": {}},
        {"flags": {"kv-cache-dtype": "fp9"}},
        {"flags": {"tp-size": {"valu": 8}}},
        {"accept": [{"id": "x"}]},
        {"model": {"pth": "x"}},
        {"env": {"A": {"value": "1", "sekret": True}}},
        {"expect": {"suit": "smoke"}},
        {"expect": {"speed": {"margins": 0.1}}},
    ],
)
def test_the_schema_rejects_what_the_parser_refuses(
    wrong: dict[str, object], validator: jsonschema.Draft202012Validator
) -> None:
    assert not validator.is_valid(wrong)


EXPECTATIONS = [
    {},
    {"suite": "standard", "ready-within": 1800, "baseline": "prod", "soak": "10m"},
    {"suite": "smok"},
    {"suite": None},
    {"ready_within": 60, "known_answer": False, "prompt_nll": 7.5},
    {"ready-within": "soon"},
    {"ready-within": True},
    {"baseline": ""},
    {"soak": 90},
    {"soak": ["10m"]},
    {"deeper": {"gsm8k": {"n": 200, "at-least": 0.9, "with": "lm-eval"}, "mmlu": None, "aime": {}}},
    {"deeper": ["gsm8k"]},
    {"deeper": {"gsm8k": {"with": "opencompass"}}},
    {"deeper": {"gsm8k": {"atleast": 0.9}}},
    {"accuracy": {"word-problems": {"at_least": 0.9, "margin": 0.05, "n": 20, "max-tokens": 64}}},
    {"accuracy": {"word-problems": {"at-least": 90}}},
    {"accuracy": {"word-problems": 0.9}},
    {"also": ["needle"], "skip": ["abort"]},
    {"also": "needle"},
    {"model": "m", "chat": False, "thinking": True},
    {"chat": "no"},
    {"known-answer": [{"prompt": "2 + 2?", "accept": ["4", 4]}]},
    {"known-answer": [{"prompt": "2 + 2?"}]},
    {"known-answer": []},
    {"known-answer": True},
    {"timeout": -1},
    {"concurrency": 0},
    {"concurrency": 1.5},
    {"common-words": 1.2},
    {"acceptance": {"at-least": 1.5, "at-most": 3}},
    {"acceptance": 2},
    {"speed": {"decode-at-least": 60, "concurrency": [4, 16], "margin": 5}},
    {"speed": {"concurrency": 4}},
    {"speed": {"tokens": 0}},
    {"fingerprint": {"kl_at_most": 0.03}},
    {"accept-warnings": {}, "nonsense": 1},
]


@pytest.mark.parametrize("expect", EXPECTATIONS, ids=lambda expect: json.dumps(expect)[:60])
def test_the_schema_and_the_parser_agree_on_each_expectation(
    expect: dict[str, object], validator: jsonschema.Draft202012Validator
) -> None:
    try:
        parse_expect(expect)
    except ExpectError:
        accepted = False
    else:
        accepted = True
    plain = {name: value for name, value in expect.items() if value is not None}
    assert validator.is_valid({"expect": plain}) is accepted


def test_every_expectation_is_completed_with_a_description_and_documented() -> None:
    schemas = profile_schema(load())["properties"]["expect"]["properties"]
    page = (PROFILES.parent / "docs" / "validation.md").read_text()
    assert list(schemas) == list(KEYS)
    for name, key in KEYS.items():
        assert schemas[name]["description"] == key.text != ""
        inside = schemas[name]["additionalProperties"]["anyOf"][0] if key.kind is Kind.NAMED else schemas[name]
        for part, inner in key.parts.items():
            assert inside["properties"][part]["description"] == inner.text != ""
        assert f"`{name}`" in page
        assert [part for part in key.parts if part not in page] == []


def test_the_shipped_schema_is_the_generated_one() -> None:
    shipped = json.loads((PROFILES / "profile.schema.json").read_text())
    generated = json.loads(json.dumps(profile_schema(load())))
    assert shipped == generated, "out of date: launch schema > profiles/profile.schema.json"


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("accuracy: {gsm8k: {at-least: 0.5}}", "unknown name `gsm8k` in `expect.accuracy`"),
        ("also: [spead]", "did you mean `speed`?"),
        ("skip: [ speed, nothing ]", "unknown name `nothing`"),
        ("timeout: soon", "is not a number"),
    ],
)
def test_a_faulty_expectation_is_refused_where_it_is_written(tmp_path: Path, expect: str, message: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"flags: {{model-path: /m}}\nexpect:\n  {expect}\n")
    with pytest.raises(YamlError) as caught:
        parse_profile("p", str(path), read(path))
    assert message in str(caught.value) and caught.value.where.endswith("p.yaml:3:3")

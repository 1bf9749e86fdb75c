"""The schema that editors use agrees with what the program itself accepts."""

import json
from pathlib import Path

import jsonschema
import pytest

from checks.engines import load
from checks.yamlfile import read
from launcher.profile_schema import profile_schema
from launcher.profiles import available

PROFILES = Path(__file__).parents[2] / "profiles"


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
    ],
)
def test_what_the_program_refuses_is_marked_while_typing(
    wrong: dict[str, object], validator: jsonschema.Draft202012Validator
) -> None:
    assert not validator.is_valid(wrong)


def test_the_shipped_schema_is_the_generated_one() -> None:
    assert json.loads((PROFILES / "profile.schema.json").read_text()) == json.loads(json.dumps(profile_schema(load())))

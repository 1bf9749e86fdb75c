"""What counts as a secret, and that it disappears from text."""

import pytest

from launcher.errors import UsageError
from launcher.secrets import MASK, Masker, fetch, is_secret, without_secrets


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "api-key",
        "admin-api-key",
        "AWS_SECRET",
        "ssl-keyfile-password",
        "OPENAI_API_KEY",
        "DJANGO_SECRET_KEY",
    ],
)
def test_these_names_are_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
        "tokenizer-path",
        "max-total-tokens",
        "max-total-token",
        "TOKENIZERS_PARALLELISM",
    ],
)
def test_names_that_resemble_secrets_are_not_secrets(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    "line",
    [
        "server_args=ServerArgs(host='x', api_key='sk-12345', admin_api_key=\"other\")",
        "server_args={'api_key': 'sk-12345', 'port': 1}",
        'server_args={"api_key": "sk-12345"}',
    ],
)
def test_a_key_that_the_engine_prints_is_masked_even_if_its_value_is_unknown(line: str) -> None:
    masked = Masker()(line)
    assert "sk-12345" not in masked
    assert "other" not in masked
    assert MASK in masked


def test_known_values_are_masked_wherever_they_appear() -> None:
    assert Masker(["hf_abcdef"])("GET /x?token=hf_abcdef&y") == f"GET /x?token={MASK}&y"


def test_none_is_not_a_secret() -> None:
    line = "server_args=ServerArgs(api_key=None)"
    assert Masker()(line) == line


def test_a_secret_that_is_not_exported_is_refused_before_anything_is_started() -> None:
    with pytest.raises(UsageError, match="`HF_TOKEN` is not set"):
        fetch(["HF_TOKEN"], {})
    assert fetch(["HF_TOKEN"], {"HF_TOKEN": "x"}) == {"HF_TOKEN": "x"}


def test_keys_are_masked_at_any_depth_and_nothing_else_changes() -> None:
    info = {
        "api_key": "sk-1", "internal_states": [{"admin_api_key": "sk-22", "tp_size": 1}], "hf_token": None,
        "launch_command": "--api-key sk-1 --model-path /m", "note": "started with sk-22",
    }  # fmt: skip
    assert without_secrets(info) == {
        "api_key": MASK, "internal_states": [{"admin_api_key": MASK, "tp_size": 1}], "hf_token": None,
        "launch_command": f"--api-key {MASK} --model-path /m", "note": f"started with {MASK}",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("launch_command='--api-key sk-1 --tp-size 2'", f"launch_command='--api-key {MASK} --tp-size 2'"),
        ("--admin-api-key=sk-1 x", f"--admin-api-key={MASK} x"),
        ("['--api-key', 'sk-1', '--port', '1']", f"['--api-key', '{MASK}', '--port', '1']"),
        ("no key: --api-keys are many", "no key: --api-keys are many"),
    ],
)
def test_keys_in_a_command_line_that_the_engine_prints_are_masked(text: str, shown: str) -> None:
    assert Masker()(text) == shown

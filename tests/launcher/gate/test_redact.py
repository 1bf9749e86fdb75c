"""Secrets in text of any origin are masked by their shape or by the name before them, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.gate.redact import has_secret, redact, redact_data

TOKEN = "hf_" + "a1B2c3D4" * 4
SHAPES = (
    TOKEN, "sk-proj-" + "a1B2" * 8, "ghp_" + "a1B2" * 9, "github_pat_" + "a1B2" * 9, "glpat-" + "a1-2" * 6,
    "AKIA" + "A1B2" * 4, "xoxb-123456-abcdef", "nvapi-" + "a1B2" * 8,
)  # fmt: skip
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("secret", SHAPES, ids=lambda text: text[:5])
def test_the_tokens_of_known_services_are_recognised_by_their_shape(secret: str) -> None:
    assert has_secret(f"value {secret}.")
    assert redact(f"x {secret} y") == "x ••• y"


@pytest.mark.parametrize("text", ["hf_hub_download", "sk-learn", "risk-" + "a" * 30, "model-path", "AKIA1234", ""])
def test_words_that_only_begin_like_a_token_are_not_secrets(text: str) -> None:
    assert not has_secret(text)
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"a\n{PRIVATE_KEY}\nrest", "a\n•••\nrest"),
        ("-----BEGIN PRIVATE KEY-----\nabc\nand the log ends here", "•••"),
        ("Authorization: Bearer abcdef123456 sent", "Authorization: Bearer ••• sent"),
        ("authorization: basic dXNlcjpwYXNzd29yZA== sent", "authorization: basic ••• sent"),
        ("http://me:pa55@proxy:3128/x", "http://me:•••@proxy:3128/x"),
        ("HTTPS://me:p@55@proxy/x and a@b", "HTTPS://me:•••@proxy/x and a@b"),
        ("http://proxy:3128/x?mail=a@b", "http://proxy:3128/x?mail=a@b"),
    ],
)
def test_keys_headers_and_passwords_in_addresses_are_masked(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("--api-key=abcdef123", "--api-key=•••"),
        ("--admin-api-key abcdef123 --tp 2", "--admin-api-key ••• --tp 2"),
        ("HF_TOKEN=hunter2 launch", "HF_TOKEN=••• launch"),
        ("'api_key': 'abcdef123'", "'api_key': '•••'"),
        ('{"password": "correct horse, battery", "n": 1}', '{"password": "•••", "n": 1}'),
        ("MY_CREDENTIALS: abcdef123", "MY_CREDENTIALS: •••"),
        ("private_key='abcdef123'", "private_key='•••'"),
        ("Über-Token=geheim123", "Über-Token=•••"),
    ],
)
def test_a_value_after_the_name_of_a_secret_is_masked(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "max_new_tokens=128 token: 5",
        "api_key=None, tokenizer_path=/models/a",
        "--api-key env:MY_KEY",
        "monkey=bananas",
        "the token expired yesterday",
        "--api-key --tp-size 2",
        "password=•••",
    ],
)
def test_numbers_names_of_variables_and_prose_stay_readable(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("word", ["a-", "a.b", "token-", "x://", "token='", "--api-key "])
def test_a_long_line_is_searched_once_and_not_once_per_word(word: str) -> None:
    """A search that begins anew at each word takes minutes here."""
    secret = f" password={TOKEN[3:]}"
    assert redact(word * 40_000 + secret).endswith("•••")


PIECES = (
    "--",
    "api-key",
    "token",
    "x",
    "=",
    ": ",
    " ",
    "'",
    '"',
    "\n",
    "hunter22",
    "Bearer ",
    "http://",
    ":",
    "@",
    "h/",
)


@given(st.lists(st.sampled_from((*PIECES, *SHAPES[:2])), max_size=14).map("".join))
def test_masking_twice_changes_nothing_more_and_leaves_no_token(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert not has_secret(once)


def test_a_value_under_a_secret_name_is_masked_entirely() -> None:
    assert redact_data({"HF_TOKEN": "short", "env": {"A_PASSWORD": "x"}, "hf_token": True, "tokens": 5}) == {
        "HF_TOKEN": "•••", "env": {"A_PASSWORD": "•••"}, "hf_token": True, "tokens": 5,
    }  # fmt: skip


def test_lists_keys_and_nested_values_of_a_document_are_masked() -> None:
    assert redact_data({"api_key": ["a b", "env:NAME"], TOKEN: 1, "log": [f"got {TOKEN}", None]}) == {
        "api_key": ["•••", "env:NAME"], "•••": 1, "log": ["got •••", None],
    }  # fmt: skip
    assert redact_data({"api_key": "", "auth_token": "None"}) == {"api_key": "", "auth_token": "None"}

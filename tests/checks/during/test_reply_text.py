"""The error text of the HTTP reply that an exception quotes."""

import pytest

from checks.during.reply_text import reply_text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('{"object":"error","message":"kernel foo: 9\\n dims","code":500}', "kernel foo: 9 dims"),
        ('res.text={"error": {"message": "no such adapter"}} and more', "no such adapter"),
        ('{"detail": "not found"}', "not found"),
        ('{"detail": [1, 2]}', '{"detail": [1, 2]}'),
        ('{"message": ""}', '{"message": ""}'),
        ("{" * 5000, "{" * 5000),
        ("a dict {1: 2} in Python", "a dict {1: 2} in Python"),
        ("plain text", "plain text"),
        ("", ""),
    ],
)
def test_the_text_of_the_first_json_object_is_returned_else_the_message(message: str, text: str) -> None:
    assert reply_text(message) == text

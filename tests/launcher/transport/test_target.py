"""Destinations as users type them; no part of one may reach ssh as an option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.errors import UsageError
from launcher.transport.target import Destination, SshTarget, parse_destination


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu-box", Destination(name="gpu-box")),
        ("root@gpu-box", Destination(name="gpu-box", user="root")),
        ("gpu-box:2222", Destination(name="gpu-box", port=2222)),
        ("a.b@10.0.0.1:22", Destination(name="10.0.0.1", user="a.b", port=22)),
        ("[::1]:22", Destination(name="::1", port=22)),
        ("root@[fe80::1%eth0]", Destination(name="fe80::1%eth0", user="root")),
        ("::1", Destination(name="::1")),
        ("ssh://root@box:22/", Destination(name="box", user="root", port=22)),
    ],
)
def test_destination_is_parsed(text: str, expected: Destination) -> None:
    assert parse_destination(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-oProxyCommand=id", "root@-oProxyCommand=id", "-l@box", "a b", "box\n", "\nbox", "box\x00", "box:0",
        "box:65536", "box:", "@box", "a@b@c", "box:ssh", "[box", "box/x", "box\u202e", "tab\tbox",
    ],
)  # fmt: skip
def test_invalid_destinations_are_rejected(text: str) -> None:
    with pytest.raises(UsageError):
        parse_destination(text)


@given(st.text())
def test_no_text_yields_an_option_or_a_blank(text: str) -> None:
    try:
        destination = parse_destination(text)
    except UsageError:
        return
    for word in (destination.name, destination.user):
        assert not word.startswith("-")
        assert word.isprintable()
        assert " " not in word
    assert destination.name


def test_host_key_name_contains_a_port_other_than_22() -> None:
    target = SshTarget(name="box", address="10.0.0.1", user="root")
    assert target.host_key_name == "10.0.0.1"
    assert SshTarget(name="box", address="10.0.0.1", user="root", port=2222).host_key_name == "[10.0.0.1]:2222"
    assert SshTarget(name="b", address="a", user="u", port=2, host_key_alias="alias").host_key_name == "alias"


def test_command_can_be_pasted() -> None:
    target = SshTarget(name="box", address="10.0.0.1", user="root", port=2222)
    assert target.command("-v") == "ssh -v -p 2222 root@10.0.0.1 true"

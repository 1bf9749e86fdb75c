"""known_hosts as OpenSSH reads it; `ssh-keygen -F` is the reference."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest

from launcher.transport.known_hosts import KnownKey, Trust, fingerprint, judge, keys_for, preferred_types

BLOB = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"k" * 32).decode()
OTHER = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"o" * 32).decode()
KEY = base64.b64decode(BLOB)


def keys_in(text: str, host: str = "gpu-box") -> tuple[KnownKey, ...]:
    return keys_for(host, [("kh", text)])


@pytest.mark.parametrize(
    ("field", "host", "matches"),
    [
        ("gpu-box", "gpu-box", True),
        ("GPU-Box", "gpu-box", True),
        ("a,gpu-box,b", "gpu-box", True),
        ("gpu-*", "gpu-box", True),
        ("gpu-bo?", "gpu-box", True),
        ("*,!gpu-box", "gpu-box", False),
        ("!gpu-box", "gpu-box", False),
        ("!other,gpu-*", "gpu-box", True),
        ("gpu", "gpu-box", False),
        ("[10.0.0.1]:2222", "[10.0.0.1]:2222", True),
        ("10.0.0.1", "[10.0.0.1]:2222", False),
        ("[10.0.0.*]:2222", "[10.0.0.1]:2222", True),
        ("[!a]x", "bx", False),
    ],
)
def test_patterns_match_hosts_as_in_openssh(tmp_path: Path, field: str, host: str, matches: bool) -> None:
    text = f"{field} ssh-ed25519 {BLOB}\n"
    assert bool(keys_in(text, host)) is matches
    assert _ssh_keygen_finds(tmp_path, text, host) is matches


def test_hashed_names_are_found(tmp_path: Path) -> None:
    file = tmp_path / "kh"
    file.write_text(f"gpu-box ssh-ed25519 {BLOB}\n[10.0.0.1]:2222 ssh-ed25519 {OTHER}\n")
    _ssh_keygen("-H", "-f", str(file))
    text = file.read_text()
    assert "gpu-box" not in text
    assert [key.where for key in keys_in(text)] == ["kh:1"]
    assert [key.where for key in keys_in(text, "[10.0.0.1]:2222")] == ["kh:2"]


def test_malformed_lines_are_skipped() -> None:
    text = f"# comment\n\ngpu-box\n|1|x|y ssh-ed25519 {BLOB}\ngpu-box ssh-ed25519 ???\n@x\ngpu-box ssh-ed25519 {BLOB} c"
    assert [key.where for key in keys_in(text)] == ["kh:7"]


def test_listed_key_is_known() -> None:
    assert judge(keys_in(f"gpu-box ssh-ed25519 {BLOB}"), "ssh-ed25519", KEY).trust is Trust.KNOWN


def test_other_key_of_the_same_type_means_changed_and_names_the_line() -> None:
    judgement = judge(keys_in(f"\ngpu-box ssh-ed25519 {OTHER}"), "ssh-ed25519", KEY)
    assert (judgement.trust, judgement.lines) == (Trust.CHANGED, ("kh:2",))


def test_one_of_several_listed_keys_suffices() -> None:
    text = f"gpu-box ssh-ed25519 {OTHER}\ngpu-box ssh-ed25519 {BLOB}"
    assert judge(keys_in(text), "ssh-ed25519", KEY).trust is Trust.KNOWN


def test_key_of_another_type_only_means_unknown() -> None:
    assert judge(keys_in(f"gpu-box ssh-rsa {OTHER}"), "ssh-ed25519", KEY).trust is Trust.UNKNOWN


def test_revoked_takes_precedence_over_known() -> None:
    text = f"gpu-box ssh-ed25519 {BLOB}\n@revoked * ssh-ed25519 {BLOB}"
    judgement = judge(keys_in(text), "ssh-ed25519", KEY)
    assert (judgement.trust, judgement.lines) == (Trust.REVOKED, ("kh:2",))


def test_certificate_authority_is_not_a_host_key() -> None:
    assert judge(keys_in(f"@cert-authority * ssh-ed25519 {BLOB}"), "ssh-ed25519", KEY).trust is Trust.UNKNOWN


def test_unlisted_host_is_unknown() -> None:
    assert judge(keys_in(f"other ssh-ed25519 {BLOB}"), "ssh-ed25519", KEY).trust is Trust.UNKNOWN


def test_listed_types_come_first() -> None:
    text = f"gpu-box ecdsa-sha2-nistp256 {OTHER}\n@cert-authority * ssh-rsa {OTHER}\ngpu-box ssh-ed25519 {BLOB}"
    assert preferred_types(keys_in(text)) == ("ecdsa-sha2-nistp256", "ssh-ed25519")


def test_fingerprint_is_the_one_that_ssh_keygen_prints(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(f"ssh-ed25519 {BLOB}\n")
    assert fingerprint(KEY) in _ssh_keygen("-l", "-f", str(file))


def _ssh_keygen(*words: str) -> str:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    return subprocess.run(["ssh-keygen", *words], capture_output=True, text=True, check=False).stdout


def _ssh_keygen_finds(directory: Path, text: str, host: str) -> bool:
    (directory / "kh").write_text(text)
    return "found" in _ssh_keygen("-F", host, "-f", str(directory / "kh"))

"""At which line each fact of a log was read."""

from __future__ import annotations

from checks.during.log.scan import scan
from checks.during.log_origins import read_at
from tests.support.shipped import index

LOG = b"""\
sglang 0.5.11
[2026-04-01 10:00:00] server_args=ServerArgs(model_path='/m/Qwen3', tp_size=2, attention_backend='fa3')
[2026-04-01 10:00:01] Load weight end. type=Qwen3MoeForCausalLM
[2026-04-01 10:00:02] Mamba Cache is allocated.
"""


def origins(text: bytes) -> dict[str, str]:
    return read_at(scan([text], index().words), None)


def test_each_fact_names_its_line() -> None:
    found = origins(LOG)
    assert found["engine.version"] == "read from log line 1"
    assert {found[name] for name in ("flag.tp-size", "flag.attention-backend", "model.name")} == {
        "read from log line 2"
    }
    assert found["model.architectures"] == "read from log line 3"
    assert found["model.hybrid"] == "read from log line 4"


def test_of_several_starts_the_last_one_counts() -> None:
    again = LOG + LOG.replace(b"tp_size=2", b"tp_size=4")
    assert origins(again)["flag.tp-size"] == "read from log line 6"


def test_facts_from_several_lines_are_described() -> None:
    found = origins(b"x\n")
    assert found["flag."] == "read from the launch command quoted in the log"
    assert found["log.phase"].startswith("read from the lines that mark the phases")
    assert "host.platform" not in found and "engine.known" not in found

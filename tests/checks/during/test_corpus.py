"""Every real log of the corpus against the whole knowledge: it gets its recorded cause, or it is healthy."""

import gzip
import random
from collections.abc import Iterator

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis, LogVerdict
from tests.support import shipped
from tests.support.paths import CORPUS

HEALTHY = "healthy"
UNKNOWN = "unknown"
EXPECTED = {
    "0.5.11-h200/assert": "speculative-triple-incomplete",
    "0.5.11-h200/base": HEALTHY,
    "0.5.11-h200/run-float32-crash": "kernel-lacks-compute-type",
    "0.5.11-h200/run-smollm2-ngram": HEALTHY,
    "0.5.11-h200/run-smollm2-standalone": HEALTHY,
    "0.5.11-h200/run-tp2-frozen-then-killed": UNKNOWN,
    "0.5.11-h200/fp8kv": HEALTHY,
    "0.5.11-h200/nextn-buf": HEALTHY,
    "0.5.11-h200/nextn-nobuf": "speculation-without-extra-buffer",
    "0.5.11-h200/run-fraction-too-large": "graph-capture-exceeds-memory",
    "0.5.11-h200/run-fraction-too-small": "kv-pool-left-empty",
    "0.5.11-h200/run-hybrid-healthy-sigterm-137": HEALTHY,
    "0.5.11-h200/run-kernels-cannot-load": "nvidia-driver-not-visible",
    "0.5.11-h200/run-nextn-buffer-healthy": HEALTHY,
    "0.5.11-h200/run-nextn-crash": "speculation-without-extra-buffer",
    "0.5.11-h200/run-rank-killed-serving": "engine-killed-from-outside",
    "0.5.11-h200/run-sigterm-loading": HEALTHY,
    "0.5.11-h200/run-refused-request-then-stop": HEALTHY,
    "0.5.11-h200/run-smollm2-float16": HEALTHY,
    "0.5.11-h200/run-smollm2-healthy": HEALTHY,
    "0.5.11-h200/trtllm-mla": "trtllm-attention-off-sm100",
    "0.5.23-cpu/a-normal": HEALTHY,
    "0.5.23-cpu/b1-keys-sigterm": HEALTHY,
    "0.5.23-cpu/b2-kill9-scheduler-running": "engine-killed-from-outside",
    "0.5.23-cpu/b3-kill9-scheduler-loading": "host-memory-exhausted",
    "0.5.23-cpu/b4-sigterm-loading": HEALTHY,
    "0.5.23-cpu/b5-sigint-loading": UNKNOWN,
    "0.5.23-cpu/c1-ngram": "nvidia-driver-not-visible",
    "0.5.23-cpu/c2-tp2": "cpu-ranks-exceed-numa-nodes",
    "0.5.23-cpu/c3-tp2-kill-loading": "cpu-ranks-exceed-numa-nodes",
    "0.5.23-cpu/cpu-sglkernel-no-libcuda": "nvidia-driver-not-visible",
    "0.5.23-cpu/cpu-vllm-missing-and-sigquit-rc137": "python-dependency-missing",
    "0.5.23-cpu/d-ambiguous": "flag-abbreviation-ambiguous",
    "0.5.23-cpu/d-badarch": "transformers-below-model-requirement",
    "0.5.23-cpu/d-badarch2": "architecture-unknown-to-release",
    "0.5.23-cpu/d-badchoice": "flag-value-not-a-choice",
    "0.5.23-cpu/d-badparser": "flag-value-not-a-choice",
    "0.5.23-cpu/d-cfgbad": "flag-unknown-to-engine",
    "0.5.23-cpu/d-cfgeq": "required-argument-missing",
    "0.5.23-cpu/d-cfglora": "config-file-rejected",
    "0.5.23-cpu/d-cfgmissing": "config-file-rejected",
    "0.5.23-cpu/d-ctxlen": "context-length-above-model-maximum",
    "0.5.23-cpu/d-gpudev": "nvidia-driver-not-visible",
    "0.5.23-cpu/d-hubname": "hub-unreachable",
    "0.5.23-cpu/d-maxtok": "kv-pool-below-context-length",
    "0.5.23-cpu/d-mem": "kv-pool-left-empty",
    "0.5.23-cpu/d-nocfg": "model-config-missing",
    "0.5.23-cpu/d-nopath": "model-path-does-not-exist",
    "0.5.23-cpu/d-notok": "tokenizer-files-missing",
    "0.5.23-cpu/d-noweights": "model-directory-without-weights",
    "0.5.23-cpu/d-quantmismatch": HEALTHY,
    "0.5.23-cpu/d-truncated": "safetensors-truncated-or-pointer",
    "0.5.23-cpu/d-unknownflag": "flag-removed-or-renamed",
    "0.5.23-cpu/e2-tp2": UNKNOWN,
    "0.5.23-cpu/e3-tp2-kill-loading": "host-memory-exhausted",
    "0.5.23-cpu/e4-tp2-stop-rank": "heartbeat-stalled",
    "0.5.23-cpu/e5-tp2-stop-loading": UNKNOWN,
    "0.5.23-cpu/f-quant-mismatch": HEALTHY,
    "0.5.23-cpu/port-in-use-false-ready": "http-port-in-use",
}


@pytest.fixture(scope="module")
def index() -> Index:
    return shipped.index()


def read(name: str) -> bytes:
    plain = CORPUS / f"{name}.log"
    return plain.read_bytes() if plain.exists() else gzip.decompress((CORPUS / f"{name}.log.gz").read_bytes())


def judge(data: bytes, index: Index) -> Diagnosis:
    return diagnose_chunks([data], index)


def test_every_log_is_listed() -> None:
    def found() -> Iterator[str]:
        for path in CORPUS.glob("*/*.log*"):
            yield f"{path.parent.name}/{path.name.partition('.log')[0]}"

    assert set(found()) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_log_is_diagnosed(name: str, index: Index) -> None:
    found = judge(read(name), index)
    outcome = found.cause.id if found.cause else HEALTHY if found.healthy else UNKNOWN
    assert outcome == EXPECTED[name], found.sentence
    if outcome == UNKNOWN:
        assert found.verdict is LogVerdict.UNKNOWN


@pytest.mark.parametrize("name", [name for name, outcome in EXPECTED.items() if outcome == HEALTHY])
def test_a_healthy_log_that_ends_anywhere_is_healthy(name: str, index: Index) -> None:
    rows = read(name).split(b"\n")
    for end in range(1, len(rows), max(len(rows) // 7, 1)):
        found = judge(b"\n".join(rows[:end]), index)
        assert found.cause is None, f"{end} lines: {found.sentence}"


def test_symptoms_are_listed_and_never_blamed(index: Index) -> None:
    found = judge(read("0.5.23-cpu/e2-tp2"), index)
    assert found.cause is None
    assert {"peer-connection-lost", "parent-told-of-failed-child"} <= {item.id for item in found.symptoms}


def test_open_warnings_of_a_healthy_run_are_kept(index: Index) -> None:
    assert "fp8-cache-with-default-scales" in {item.id for item in judge(read("0.5.11-h200/fp8kv"), index).ledger}


def test_the_same_unknown_failure_has_the_same_fingerprint(index: Index) -> None:
    text = read("0.5.23-cpu/d-mem").replace(b"Loaded weights leave no GPU memory", b"Quite another thing")
    other = text.replace(b"line 3050", b"line 3999").replace(b"15:35:", b"16:35:").replace(b"0.0001", b"0.0002")
    first, second = judge(text, index), judge(other, index)
    assert first.cause is None and first.fingerprint == second.fingerprint
    assert first.fingerprint == "ValueError@srt/mem_cache/kv_cache_configurator.py:_profile_available_bytes/memory"


@pytest.mark.parametrize("seed", range(12))
def test_damaged_logs_are_judged(seed: int, index: Index) -> None:
    chance = random.Random(seed)
    data = bytearray(read(chance.choice(list(EXPECTED))))
    for _ in range(chance.randrange(1, 400)):
        place = chance.randrange(len(data))
        match chance.randrange(3):
            case _ if len(data) < 400:
                data += b"Error: "
            case 0:
                data[place] = chance.randrange(256)
            case 1:
                del data[place : place + chance.randrange(400)]
            case _:
                data[place:place] = data[: chance.randrange(200)]
    found = judge(bytes(data), index)
    assert found.sentence
    assert found.healthy is False or found.cause is None

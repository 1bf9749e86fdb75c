"""Derive facts about installed packages, compared with the release's requirements and with each other.

`tables` has the release's pins and minimum versions, `cuda` the CUDA versions, `kernels` the compiled wheels; the
causes in the knowledge have the remedies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.specifiers import SpecifierSet

from checks.catalog.conditions import Facts
from checks.facts.derived import cuda
from checks.facts.derived.kernels import KERNELS, default_facts, kernel_facts, triton_facts
from checks.facts.derived.tables import Requirements, requirements
from checks.vocabulary import EngineRange, parse_version

# These releases register the model type `qwen3_asr` without exist_ok (0.5.11:srt/configs/qwen3_asr.py:167), so the
# import fails beside a transformers that brings the type itself: not 5.12.1, but 5.16.1.
_STRICT_QWEN3_ASR = EngineRange(">=0.5.11,<0.5.20")
# Observed failures: 5.12 with 0.5.11 (pins 5.6), 5.16 with 0.5.20 (pins 5.12). A smaller distance is only suspect.
_FAR_AHEAD = 4
# Models whose classes the engine takes from transformers → first transformers that has the type.
_MODEL_NEEDS = (
    (r"^Glm4MoeLite", (5, 0)), (r"^Gemma4", (5, 5)), (r"^Ernie4_5_VL", (5, 0)), (r"^Qwen3(VL|OmniMoe)", (4, 57)),
    (r"^Glm4vMoe", (4, 56)), (r"^Glm4v", (4, 53)), (r"^Llama4", (4, 51)), (r"^Qwen3(Moe)?For", (4, 51)),
    (r"^Gemma3n", (4, 53)), (r"^Gemma3", (4, 50)), (r"^Qwen2_5_VL", (4, 49)), (r"^GptOss", (4, 55)),
)  # fmt: skip
# Up to 0.5.10 sessions of 0.3.10 and later are taken for dead; the images of 0.5.9 and 0.5.10 hold 0.3.9.
_MOONCAKE_EXPECTED = {"0.5.9": "0.3.9", "0.5.10": "0.3.9"}
_MOONCAKE_BROKEN_FROM = (0, 3, 10)
# Packages with their own, more specific rules: for a missing package, and for another version.
_OWN_RULES_ABSENT = frozenset({"torch", "flashinfer-python", "sgl-kernel", "sglang-kernel"})
_OWN_RULES = _OWN_RULES_ABSENT | {"transformers", "flashinfer-cubin"}
_FLASHINFER = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `package.` facts: `kernel.* flashinfer.* torch.* transformers.* cudnn.* triton.* mooncake.* nvshmem.*`."""
    if facts.get("host.platform", "cuda") != "cuda":
        return {}
    installed = _normalised(facts)
    wanted = requirements(facts.get("engine.version"))
    found: dict[str, Any] = {f"package.{name}": version for name, version in installed.items()}
    found |= default_facts(installed, wanted, facts) | _pins(wanted)
    if installed:
        found |= _torch(installed, wanted) | kernel_facts(installed, wanted, facts) | triton_facts(installed, facts)
        found |= _flashinfer(installed, wanted) | _transformers(installed, wanted, facts)
        found |= _cudnn(installed) | _transfer(installed, facts) | _unmet(installed, wanted)
    return {name: value for name, value in found.items() if facts.get(name) is None}


def _normalised(facts: Facts) -> dict[str, Any]:
    names = {key.removeprefix("package."): value for key, value in facts.items() if key.startswith("package.")}
    return {re.sub(r"[-_]+", "-", name).lower(): value for name, value in names.items()}


def _pins(wanted: Requirements | None) -> dict[str, Any]:
    """Return `package.` facts `torch.pin transformers.pin kernel.pin flashinfer.pin`, whatever is installed."""
    names = {"torch": ("torch",), "transformers": ("transformers",), "kernel": KERNELS, "flashinfer": _FLASHINFER[:1]}
    found = {key: next((pin for name in of if wanted and (pin := wanted.pin(name))), None) for key, of in names.items()}
    return {f"package.{key}.pin": pin for key, pin in found.items() if pin}


def _torch(installed: Mapping[str, Any], wanted: Requirements | None) -> dict[str, Any]:
    version = installed.get("torch")
    if not version:
        return {}
    found: dict[str, Any] = {}
    own = cuda.of_torch(version)
    if own is not None:
        found["package.torch.cuda"] = own
    pin = wanted.pin("torch") if wanted else None
    if pin:
        found["package.torch.differs"] = cuda.series(pin) != cuda.series(version)
    majors = {_nvidia_major(installed, stem) for stem in ("nvidia-cuda-runtime", "nvidia-cuda-nvrtc")} - {None}
    if own and majors:
        found["package.cuda_major_missing"] = int(own) not in majors
    return found


def _nvidia_major(installed: Mapping[str, Any], stem: str) -> int | None:
    """Return the CUDA major of an NVIDIA wheel: from a name such as `nvidia-cuda-nvrtc-cu12`, else from the version."""
    for name, version in installed.items():
        if version and name.startswith(stem):
            tagged = re.search(r"-cu(\d+)$", name)
            return int(tagged[1]) if tagged else int(cuda.number(version) or 0) or None
    return None


def _flashinfer(installed: Mapping[str, Any], wanted: Requirements | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    versions = {name: _public(installed[name]) for name in _FLASHINFER if installed.get(name)}
    if "flashinfer-python" in versions and len(versions) > 1:
        found["package.flashinfer.differ"] = len(set(versions.values())) > 1
    minimum = wanted.minimum.get("flashinfer-python") if wanted else None
    if minimum is None or "flashinfer-python" not in installed:
        return found
    found["package.flashinfer.minimum"] = minimum
    version = installed["flashinfer-python"]
    if not version:
        return {**found, "package.flashinfer.state": "former-name" if installed.get("flashinfer") else "absent"}
    have, need = parse_version(str(version)), parse_version(minimum)
    return {**found, "package.flashinfer.state": "below" if have and need and have < need else "ok"}


def _transformers(installed: Mapping[str, Any], wanted: Requirements | None, facts: Facts) -> dict[str, Any]:
    version = parse_version(str(installed.get("transformers") or ""))
    if version is None:
        return {}
    here = (version.major, version.minor)
    found: dict[str, Any] = {}
    architectures = facts.get("model.architectures")
    for name in architectures if isinstance(architectures, list | tuple) else ():
        needs = next((first for pattern, first in _MODEL_NEEDS if re.search(pattern, str(name))), None)
        if needs:
            found["package.transformers.model_needs"] = ".".join(map(str, needs))
            found["package.transformers.below_model"] = here < needs
    pin = parse_version((wanted.pin("transformers") if wanted else None) or "")
    if pin is None:
        return found
    pinned = (pin.major, pin.minor)
    strict = _STRICT_QWEN3_ASR.contains(facts.get("engine.version"))
    return {
        **found,
        "package.transformers.relation": "same" if pinned == here else "newer" if here > pinned else "older",
        "package.transformers.other_major": pin.major != version.major,
        "package.transformers.collides": strict and here >= (5, 13),
        "package.transformers.far_newer": here >= (pin.major, pin.minor + _FAR_AHEAD),
    }


def _cudnn(installed: Mapping[str, Any]) -> dict[str, Any]:
    """cuDNN as it numbers itself: 9.10.2 is 91002."""
    version = next(
        (installed[name] for name in installed if name.startswith("nvidia-cudnn-cu") and installed[name]), None
    )
    parts = re.findall(r"\d+", str(version or ""))[:3]
    if len(parts) < 2:
        return {"package.cudnn.seen": False}
    major, minor, patch = (*map(int, parts), 0)[:3]
    number = major * 10000 + minor * 100 + patch
    return {"package.cudnn.seen": True, "package.cudnn.number": number, "package.cudnn.version": version}


def _transfer(installed: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Libraries that move data between GPUs: Mooncake against the release, and the NVSHMEM wheel of torch."""
    found: dict[str, Any] = {}
    if "deep-ep" in installed or "sgl-deep-ep" in installed:
        found["package.deep_ep.absent"] = not (installed.get("deep-ep") or installed.get("sgl-deep-ep"))
    nvshmem = next(
        (installed[name] for name in installed if name.startswith("nvidia-nvshmem") and installed[name]), None
    )
    if nvshmem:
        found["package.nvshmem.version"] = nvshmem
    engine = parse_version(str(facts.get("engine.version") or ""))
    mooncake = parse_version(str(installed.get("mooncake-transfer-engine") or ""))
    expected = _MOONCAKE_EXPECTED.get(engine.base_version) if engine else None
    wanted = parse_version(expected or "")
    if engine is None or mooncake is None:
        return found
    found["package.mooncake.ahead"] = engine.release < (0, 5, 11) and mooncake.release >= _MOONCAKE_BROKEN_FROM
    found["package.mooncake.expected"] = expected or "before 0.3.10"
    if wanted is not None:
        found["package.mooncake.behind"] = mooncake < wanted
    return found


def _unmet(installed: Mapping[str, Any], wanted: Requirements | None) -> dict[str, Any]:
    """List unmet requirements of the release in the style of `pip check`, except packages with their own rules."""
    unmet = []
    for name, specifier in sorted(wanted.requires.items() if wanted else ()):
        version = installed.get(name, "")
        if version is None and name not in _OWN_RULES_ABSENT:
            unmet.append(f"{name}{specifier} (not installed)")
        elif version and name not in _OWN_RULES and not _meets(str(version), specifier):
            unmet.append(f"{name}{specifier} ({version} is)")
    return {"package.requirements_unmet": ", ".join(unmet)} if unmet else {}


def _meets(version: str, specifier: str) -> bool:
    """As pip judges it, post releases and all: an EngineRange looks at the release number alone."""
    parsed = parse_version(version)
    return parsed is None or SpecifierSet(specifier).contains(parsed, prereleases=True)


def _public(version: object) -> str:
    return str(version).split("+", maxsplit=1)[0]

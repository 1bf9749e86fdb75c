"""Suspect the package whose code raised the exception: its version may not be the one that the release needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from packaging.requirements import InvalidRequirement, Requirement

from checks.catalog.conditions import Facts
from checks.engine.feature_map import plain, words_of
from checks.engine.flag_schema import FlagSchema
from checks.engine.module_history import releases_with
from checks.suspects import attribution_wording as wording
from checks.suspects.clues import Clues
from checks.vocabulary import Remedy, Suspect

_MISSING = re.compile(
    r"cannot import name '\w+' from '([\w.]+)'|module '([\w.]+)' has no attribute|No module named '([\w.]+)'"
    r"|operator (\w+)::\w+ does not exist"
)
# a shared library of a package that does not fit the libraries that it needs
_LIBRARY = re.compile(r"/(?:site|dist)-packages/([A-Za-z_]\w*)/[^\s:]*\.so[^\s:]*: undefined symbol: \S+")
# a name or an argument that the other side does not have: the versions do not belong together
_OTHER_INTERFACE = re.compile(r"(?:AttributeError|NameError|TypeError: .*(?:unexpected keyword|positional argument))")
_USED = frozenset({
    "triton", "flashinfer", "deepgemm", "deepep", "transformers", "xgrammar", "outlines", "torchao", "mooncake", "nixl",
    "aiter", "torchvision", "compressed",
})  # fmt: skip
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/([A-Za-z_]\w*)[/.]")
# packages whose code calls others
_GENERAL = frozenset({"torch", "uvicorn", "starlette", "fastapi", "sglang", "anyio", "uvloop", "zmq"})


def suspected_package(clues: Clues, facts: Facts, schema: FlagSchema) -> Suspect | None:
    """Return the package that failed, with the version that the release requires; None if no package is suspected.

    It is the package of the innermost frame, or the package on which the engine misses a name. A name that is missing
    in the engine itself points to an installation of mixed versions.
    """
    first = next(iter(clues.places), None)
    missing = _MISSING.search(clues.message)
    library = _LIBRARY.search(clues.message)
    if library and library[1] not in _GENERAL:
        return _suspect(library[1], library[0], wording.missing_in_package, facts, schema)
    module = next(filter(None, missing.groups()), "") if missing else ""
    name = module.partition(".")[0]
    if name == "sglang" and (there := releases_with(module)) and schema.version not in there:
        reason = wording.module_of_other_releases(module, there[0], there[-1])
        remedy = Remedy(require={"sglang": f"=={there[-1]}"}, text="for code that was written for this release")
        return Suspect(setting="package.sglang", value=schema.version, reasons=(reason,), experiments=(remedy,))
    if name and name not in sys.stdlib_module_names:
        return _suspect(name, missing[0] if missing else "", wording.missing_in_package, facts, schema)
    installed = _INSTALLED.match(first.file) if first and not first.engine else None
    if first and installed and installed[1] not in _GENERAL:
        return _suspect(installed[1], first.function, wording.in_package, facts, schema)
    used = next((word for word in words_of(first.file) if word in _USED), "") if first and first.engine else ""
    if first and used and _OTHER_INTERFACE.match(clues.message):
        return _suspect(used, first.where, wording.other_interface, facts, schema)
    return None


def _suspect(name: str, what: str, reason: Callable[..., str], facts: Facts, schema: FlagSchema) -> Suspect:
    required = _requirement(name, schema)
    distribution = required.name if required else name.replace("_", "-")
    version = str(facts.get(f"package.{distribution}") or "")
    specifier = str(required.specifier) if required else f"=={schema.version}" if name == "sglang" else ""
    return Suspect(
        setting=f"package.{distribution}",
        value=version,
        reasons=(reason(what, distribution, specifier, version),),
        experiments=(Remedy(require={distribution: specifier}),) if specifier else (),
    )


def _requirement(name: str, schema: FlagSchema) -> Requirement | None:
    """Return the requirement of the release for an imported package: `flashinfer` is in `flashinfer-python`."""
    for text in schema.requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if plain(requirement.name) in (plain(name), f"{plain(name)}python") and requirement.specifier:
            return requirement
    return None

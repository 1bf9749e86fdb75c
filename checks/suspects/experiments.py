"""Propose experiments for a suspect: the nearest settings that avoid its code and that the release accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from checks.engine.flag_schema import Flag, FlagSchema
from checks.suspects.settings import Setting
from checks.vocabulary import Remedy

Refuses = Callable[[str, str], bool]
"""Whether `launch check` refuses the launch with the option `name` set to `value`."""

# The most portable choices: plain PyTorch or Triton code that runs on every GPU.
_PORTABLE = ("triton", "torch_native", "pytorch", "auto", "xgrammar", "cutlass", "none", "slow")
_SIZES = frozenset({"tp-size", "dp-size", "ep-size", "pp-size", "nnodes", "speculative-eagle-topk"})
_NEEDED = frozenset({"model-path"})
_MOST = 2


def experiments(setting: Setting, schema: FlagSchema, refuses: Refuses) -> tuple[Remedy, ...]:
    """Return at most two experiments, the cheapest first; empty for a setting that cannot be changed in the launch."""
    namespace, _, name = setting.fact.partition(".")
    if namespace == "env":
        return (Remedy(unset_env=(name,)),)
    if namespace != "flag":
        return ()
    return tuple(_of_flag(name, setting, schema, refuses))[:_MOST]


def _of_flag(name: str, setting: Setting, schema: FlagSchema, refuses: Refuses) -> Iterator[Remedy]:
    spelled = schema.spell(name) or name
    if not setting.given:
        switch = (flag := schema.by_name.get(spelled)) is not None and flag.is_switch
        yield Remedy(set={spelled: True if switch else "<value>"}, concrete=switch)
        return
    flag = schema.by_name.get(spelled)
    if setting.path.startswith(("/", "~")):
        yield Remedy(inspect=f"ls -l {setting.path}")
    if name in _SIZES and setting.value != "1":
        yield Remedy(set={spelled: "1"})
    if name not in _NEEDED:
        yield Remedy(unset=(spelled,))
    for choice in _alternatives(flag, setting.value):
        if not refuses(name, choice):
            yield Remedy(set={spelled: choice})
            return


def _alternatives(flag: Flag | None, value: str) -> Iterator[str]:
    """Yield the other choices of an option that run everywhere; its default is what leaving it out gives."""
    choices = [str(choice) for choice in (flag.choices if flag else None) or ()]
    current = (value, str(flag.default) if flag else "")
    yield from (choice for choice in _PORTABLE if choice in choices and choice not in current)

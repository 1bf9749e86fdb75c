"""Work out what a change of profiles means: which values differ, and which words of the command line, per release.

Comments, formatting, the order of keys and the file that sets a value have no meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from checks.engine.flag_schema import FlagSchema
from checks.vocabulary import FlagValue
from launcher.errors import LauncherError
from launcher.gate.redact import redact
from launcher.gate.report import Difference, Effect
from launcher.gate.side import Side
from launcher.plan.launch_plan import LaunchPlan, Target, make_plan, render_flag
from launcher.profile.file import EnvSetting, Profile, Setting
from launcher.profile.resolve import for_engine

PYTHON = "python3"


def meaning(profile: Profile) -> dict[str, dict[str, str]]:
    """Return everything that a launch or its judgement depends on, as kind → name → text."""
    return {
        "flag": {name: _setting(item) for name, item in profile.flags.items()},
        "env": {name: _setting(item) for name, item in profile.env.items()},
        "model": {name: _setting(item) for name, item in profile.model.items()},
        "hardware": {name: _setting(item) for name, item in profile.hardware.items()},
        "engine": {"engine": profile.engine.text} if profile.engine.text else {},
        "expect": {name: json.dumps(value, sort_keys=True) for name, value in profile.expect.items()},
        "accept": {item.id: _accepted(item.reason, item.owner, str(item.until or "")) for item in profile.accept},
        "abstract": {"abstract": "true"} if profile.abstract else {},
    }


def differences(old: Profile | None, new: Profile | None, side: Side) -> tuple[Difference, ...]:
    """Return the values that differ, in the order of the new file, each with the line that sets it now."""
    before, after = meaning(old) if old else {}, meaning(new) if new else {}
    changed = []
    for kind in before | after:
        was, now = before.get(kind, {}), after.get(kind, {})
        for name in [*now, *(name for name in was if name not in now)]:
            if was.get(name) != now.get(name):
                place = side.place(_where(new, kind, name)) if new else None
                changed.append(Difference(kind=kind, name=name, before=was.get(name), after=now.get(name), place=place))
    return tuple(changed)


def effects(old: Profile | None, new: Profile | None, schemas: Iterable[FlagSchema]) -> tuple[Effect, ...]:
    """Return the words of the command line and the variables that the change removes and adds, per release.

    Consecutive releases with equal changes share one row.
    """
    rows: list[Effect] = []
    ranges = {item.engine for item in (old, new) if item is not None}
    for schema in schemas:
        if not any(item.contains(schema.version) for item in ranges):
            continue
        before, after = _words(old, schema), _words(new, schema)
        removed = tuple(word for word in before if word not in after)
        added = tuple(word for word in after if word not in before)
        if rows and (rows[-1].removed, rows[-1].added) == (removed, added):
            rows[-1] = Effect(releases=(*rows[-1].releases, schema.version), removed=removed, added=added)
        else:
            rows.append(Effect(releases=(schema.version,), removed=removed, added=added))
    return tuple(row for row in rows if row.removed or row.added)


def planned(profile: Profile, schema: FlagSchema, env: Mapping[str, str] | None = None) -> LaunchPlan:
    """Return the launch plan of a profile for one release. Raises PlanRefused."""
    target = Target(host="-", engine=schema.version, python=PYTHON, work_dir="-", env=env or {})
    ranged = any(item.engine.text for item in profile.flags.values()) or any(
        item.engine.text for item in profile.env.values()
    )
    return make_plan(for_engine(profile, schema.version) if ranged else profile, schema, target)


def _words(profile: Profile | None, schema: FlagSchema) -> list[str]:
    """One text per flag and variable; empty for a release outside the profile's range."""
    if profile is None or profile.abstract or not profile.engine.contains(schema.version):
        return []
    try:
        plan = planned(profile, schema)
    except LauncherError:
        return []
    flags = [" ".join(render_flag(name, value)) for name, value in plan.flags.items()]
    words = [*(word for word in flags if word), *(f"{name}={value}" for name, value in plan.env.items())]
    return [redact(word) for word in words]


def _where(profile: Profile | None, kind: str, name: str) -> str:
    if profile is None:
        return ""
    sections: dict[str, Mapping[str, Any]] = {
        "flag": profile.flags, "env": profile.env, "model": profile.model, "hardware": profile.hardware,
        "accept": {item.id: item for item in profile.accept},
    }  # fmt: skip
    item = sections.get(kind, {}).get(name)
    return str(item.where) if item is not None else profile.path


def _setting(item: Setting | EnvSetting) -> str:
    text = _text(item.value) if isinstance(item, Setting) else "(secret)" if item.secret else redact(item.value)
    return f"{text} (engine {item.engine.text})" if item.engine.text else text


def _text(value: FlagValue) -> str:
    """The value as text that no value of another type has: the switch `true` is not the word `"true"`."""
    if isinstance(value, bool):
        return str(value).lower()
    plain = isinstance(value, str) and value not in ("true", "false") and not value.startswith(("[", '"'))
    return redact(str(value) if plain else json.dumps(value, ensure_ascii=False))


def _accepted(reason: str, owner: str, until: str) -> str:
    return "; ".join(
        part for part in (reason, f"owner {owner}" if owner else "", f"until {until}" if until else "") if part
    )

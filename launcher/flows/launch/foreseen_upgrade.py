"""Foresee an upgrade of one profile: the same launch on two releases, and the edits that the new release asks for.

What a release makes of the launch comes from its twin where `launch engines fetch` has stored it, else from its schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from checks.before.release_changes import default_changes
from checks.before.rule_index import packages
from checks.before.rules import check
from checks.engine.flag_schema import FlagSchema, load
from checks.facts.launch_evidence import Launch
from checks.vocabulary import Finding, FlagValue, Severity
from launcher.flows.launch.twin_check import Asked, available, findings, twin_answers
from launcher.knowledge_cache import rules
from launcher.plan.launch_facts import engine_version, to_launch
from launcher.plan.launch_plan import hardware, offline_flags, spell
from launcher.profile.file import Profile
from launcher.profile.resolve import for_engine
from launcher.profile.upgrade_edits import ProfileEdits, after_remedy
from launcher.transport.base import Transport
from launcher.twin import release_store

# Resolved arguments that differ between two runs of one release.
_ARBITRARY = frozenset({"nccl_port", "random_seed", "dist_init_addr", "port", "host"})
_RETIRED = ("flag-deprecated", "flag-removed-or-renamed", "env-variable-removed", "env-variable-renamed")


class Argument(Struct, frozen=True, kw_only=True):
    """A server arg to which the two releases resolve this launch differently. Empty: the release has no such option."""

    name: str
    before: str
    after: str


class Side(Struct, frozen=True, kw_only=True):
    """The launch on one release. `effective` is empty if its twin was not asked or could not answer."""

    engine: str
    launch: Launch
    flags: Mapping[str, FlagValue]
    renamed: Mapping[str, str]
    findings: tuple[Finding, ...]
    effective: Mapping[str, Any] = field(default_factory=dict)
    twin: Literal["asked", "undecided", "absent"] = "absent"

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the launch on this release."""
        return tuple(item for item in self.findings if item.severity is Severity.ERROR)


class Upgrade(Struct, frozen=True, kw_only=True):
    """What an upgrade means for a profile. `after` is the profile with `edits` on the new release."""

    old: Side
    new: Side
    after: Side
    edits: ProfileEdits
    arguments: tuple[Argument, ...]

    @property
    def spelled(self) -> dict[str, str]:
        """The flags that the launcher passes under another name from now on: name in the profile → new name."""
        return {name: now for name, now in self.new.renamed.items() if self.old.renamed.get(name) != now}

    @property
    def appeared(self) -> tuple[Finding, ...]:
        """The findings that only the new release has."""
        return tuple(item for item in self.new.findings if _key(item) not in set(map(_key, self.old.findings)))

    @property
    def gone(self) -> tuple[Finding, ...]:
        """The findings that only the old release has."""
        return tuple(item for item in self.old.findings if _key(item) not in set(map(_key, self.new.findings)))

    @property
    def left(self) -> tuple[Finding, ...]:
        """The errors on the new release that the edits do not end."""
        return self.after.errors


class Machine(Struct, frozen=True, kw_only=True):
    """Where the profile runs: the facts of a host, else the GPUs that the profile or the user names."""

    raw: Mapping[str, Any] | None = None
    gpu: Mapping[str, Any] = field(default_factory=dict)


def foresee(transport: Transport, profile: Profile, machine: Machine, old: str, new: str) -> Upgrade:
    """Return what an upgrade from release `old` to `new` means. Raises HostCommandFailed if a twin does not start."""
    before, now = (_side(transport, profile, machine, version) for version in (old, new))
    edits, edited, after = ProfileEdits(), profile, now
    tried: set[tuple[str, str]] = set()
    while pending := [item for item in after.findings if _needs_edit(item, before) and _key(item) not in tried]:
        finding = pending[0]
        tried.add(_key(finding))
        proposed, changed = after_remedy(profile, edited, finding, new, edits)
        result = _side(transport, changed, machine, new) if changed != edited else after
        if _ends(finding, after, result):
            edits, edited, after = proposed, changed, result
    still_old = _side(transport, edited, machine, old) if edits.settings else before
    broken = {_key(item) for item in still_old.errors} - {_key(item) for item in before.errors}
    return Upgrade(
        old=before,
        new=now,
        after=after,
        edits=edits.within(profile, new, keeps_old=not broken),
        arguments=tuple(_arguments(before, after)),
    )


def _needs_edit(finding: Finding, before: Side) -> bool:
    known = _key(finding) in set(map(_key, before.findings))
    return not known and (finding.severity is Severity.ERROR or finding.id in _RETIRED)


def _ends(finding: Finding, before: Side, after: Side) -> bool:
    """Whether an edit did what it is for: its finding is gone, and no error is new."""
    errors = set(map(_key, after.errors)) - set(map(_key, before.errors))
    return not errors and _key(finding) not in set(map(_key, after.findings))


def _key(finding: Finding) -> tuple[str, str]:
    return finding.id, finding.subject


def _side(transport: Transport, profile: Profile, machine: Machine, version: str) -> Side:
    schema = load(version)
    profile = for_engine(profile, version)
    home = str(((machine.raw or {}).get("host") or {}).get("home") or "")
    flags, renamed = spell(offline_flags(profile, home), schema)
    launch = _launch(profile, flags, machine, version)
    found = check(launch, rules())
    side = Side(engine=version, launch=launch, flags=flags, renamed=renamed, findings=tuple(found))
    if not available(version):
        return side
    asked = Asked(name=profile.name, launch=launch, flags=flags, raw=machine.raw)
    answer = twin_answers(transport, version, [asked])[profile.name]
    if answer.kind == "unknown":
        return replace(side, twin="undecided")
    reported = {item.id for item in found}
    told = tuple(item for item in findings(answer, asked, version) if item.id not in reported)
    # what the release resolves by itself is shown as a difference of two releases, not as a finding on each
    refused = tuple(item for item in told if item.severity is Severity.ERROR)
    return replace(side, findings=(*found, *refused), effective=answer.effective, twin="asked")


def _launch(profile: Profile, flags: Mapping[str, FlagValue], machine: Machine, version: str) -> Launch:
    env = {key: item.value for key, item in profile.env.items() if not item.secret}
    if machine.raw is None:
        model = {"name": str(profile.model["name"].value)} if "name" in profile.model else {}
        return Launch(engine=version, flags=flags, env=env, gpu=machine.gpu or hardware(profile), model=model)
    launch = to_launch(machine.raw, flags, env, packages(rules()))
    if engine_version(machine.raw) == version:
        return launch
    release = release_store.stored(version)  # the upgrade brings the packages that it requires
    return replace(launch, engine=version, packages=release.assumed() if release else {})


def _arguments(before: Side, after: Side) -> Iterator[Argument]:
    """Yield what the two releases resolve differently; without both twins, the defaults that changed."""
    old, new = load(before.engine), load(after.engine)
    if not before.effective or not after.effective:
        for change in default_changes(before.flags, old, new):
            yield Argument(name=change.flag, before=change.before or _shown(None), after=change.after or _shown(None))
        return
    was, now = _resolved(before, old), _resolved(after, new)
    defaults = _defaults(old) | _defaults(new)
    for name in sorted({*was, *now}):
        left, right = was.get(name), now.get(name)
        if name in was and name in now:
            if _shown(left) != _shown(right):
                yield Argument(name=name, before=_shown(left), after=_shown(right))
        elif _shown(left if name in was else right) not in (_shown(defaults.get(name)), _shown(None)):
            yield Argument(
                name=name, before=_shown(left) if name in was else "", after=_shown(right) if name in now else ""
            )


def _resolved(side: Side, schema: FlagSchema) -> dict[str, Any]:
    """Return canonical name → resolved value of the options that both sides can be compared by."""
    by_dest = {flag.dest: schema.canonical(flag.names[0]) or flag.names[0] for flag in schema.flags if not flag.hidden}
    return {by_dest[key]: value for key, value in side.effective.items() if key in by_dest and key not in _ARBITRARY}


def _defaults(schema: FlagSchema) -> dict[str, Any]:
    return {schema.canonical(flag.names[0]) or flag.names[0]: flag.default for flag in schema.flags}


def _shown(value: Any) -> str:
    return "automatic" if value is None else str(value)

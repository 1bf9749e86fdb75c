"""Turn a profile, host facts and a flag schema into a LaunchPlan. Pure.

A plan contains everything needed to repeat the launch except the values of secrets.
`launcher.plan.launch_script` writes its shell script.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from checks.engine.flag_history import flag_span
from checks.engine.flag_schema import FlagSchema
from checks.vocabulary import Finding, FlagValue, Origin, Severity, parse_version
from launcher.errors import PlanRefused
from launcher.profile.file import Profile
from launcher.secrets import FROM_ENV, is_secret

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", "30000"
# Without PYTHONUNBUFFERED, output of the engine's `print` reaches the log only when the engine ends. Without SPT_NOENV,
# setproctitle overwrites /proc/PID/environ, where the launcher looks up the run id of a process.
ALWAYS_ENV = {"PYTHONUNBUFFERED": "1", "SPT_NOENV": "1"}


class LaunchPlan(Struct, frozen=True, kw_only=True):
    """One fully resolved launch of one profile on one host."""

    profile: str
    digest: str
    host: str
    engine: str  # version on the host
    python: str
    work_dir: str
    flags: Mapping[str, FlagValue]  # under this engine's names, without dashes and without secrets
    env: Mapping[str, str]
    secret_env: tuple[str, ...] = ()  # names; the launcher fetches their values when the run starts
    secret_flags: Mapping[str, str] = field(default_factory=dict)  # flag → variable that holds its value
    model_path: str = ""
    served_name: str = ""
    server_host: str = DEFAULT_HOST
    server_port: int = int(DEFAULT_PORT)
    renamed: Mapping[str, str] = field(default_factory=dict)  # name in the profile → name in this engine

    @property
    def argv(self) -> tuple[str, ...]:
        """The engine's command line. The module `sglang.launch_server` exists in every release."""
        words = [self.python, "-m", "sglang.launch_server"]
        if self.secret_flags:
            words += ["--config", "secrets.yaml"]
        return (*words, *self.flag_words)

    @property
    def flag_words(self) -> tuple[str, ...]:
        """The flags of the command line without secret ones, whose file exists only during a launch."""
        return tuple(word for name, value in self.flags.items() for word in render_flag(name, value))

    @property
    def probe_host(self) -> str:
        """The address at which the host reaches its own server."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.server_host, self.server_host)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON data, in the form that a Run stores."""
        return {**asdict(self), "argv": list(self.argv), "command_line": shlex.join(self.argv)}


def from_json(data: Mapping[str, Any]) -> LaunchPlan:
    """Return the plan that a Run stored with `to_json`."""
    fields = {name: data[name] for name in LaunchPlan.__struct_fields__ if name in data}
    fields["secret_env"] = tuple(fields.get("secret_env", ()))
    return LaunchPlan(**fields)


class Target(Struct, frozen=True, kw_only=True):
    """The host and its engine: version, interpreter, working folder, and environment from the inventory."""

    host: str
    engine: str  # version
    python: str
    work_dir: str
    home: str = ""  # home folder on the host, which replaces `~`; empty if unknown
    env: Mapping[str, str] = field(default_factory=dict)


def make_plan(profile: Profile, schema: FlagSchema, target: Target) -> LaunchPlan:
    """Return the plan. Raises PlanRefused for a profile that no engine can launch: abstract, or an invalid port."""
    if profile.abstract:
        raise PlanRefused(
            f"profile `{profile.name}` is abstract: other profiles extend it, and it cannot be launched",
            where=profile.path,
            hint="`launch list` lists the profiles that can be launched",
        )
    flags = offline_flags(profile, target.home)
    secret_flags = {name: str(value).removeprefix(FROM_ENV) for name, value in flags.items() if is_secret(name)}
    spelled, renamed = spell({name: value for name, value in flags.items() if name not in secret_flags}, schema)
    model_path = str(flags.get("model-path") or flags.get("model") or "")
    return LaunchPlan(
        profile=profile.name,
        digest=profile.digest,
        host=target.host,
        engine=target.engine,
        python=target.python,
        work_dir=target.work_dir,
        flags=spelled,
        env={**ALWAYS_ENV, **target.env, **{n: e.value for n, e in profile.env.items() if not e.secret}},
        secret_env=tuple(sorted({*(n for n, e in profile.env.items() if e.secret), *secret_flags.values()})),
        secret_flags=secret_flags,
        model_path=model_path,
        served_name=str(flags.get("served-model-name") or model_path),
        server_host=str(flags["host"]),
        server_port=_port(flags["port"], profile),
        renamed=renamed,
    )


def offline_flags(profile: Profile, home: str = "") -> dict[str, FlagValue]:
    """Return every flag of the launch: the profile's, its model's, and the listen address.

    `home` is the home folder on the host, which replaces `~`; empty if unknown.
    """
    flags: dict[str, FlagValue] = {name: item.value for name, item in profile.flags.items()}
    if "model-path" not in flags and "model" not in flags and "path" in profile.model:
        flags = {"model-path": profile.model["path"].value, **flags}
    if "served-name" in profile.model:
        flags.setdefault("served-model-name", profile.model["served-name"].value)
    flags.setdefault("host", DEFAULT_HOST)
    flags.setdefault("port", DEFAULT_PORT)
    return {name: _at_home(value, home) for name, value in flags.items()}


def hardware(profile: Profile) -> dict[str, Any]:
    """The GPUs that a profile was made for, as rules see them."""
    wanted = {name: str(item.value) for name, item in profile.hardware.items()}
    found: dict[str, Any] = {"name": wanted["gpu"]} if "gpu" in wanted else {}
    if "platform" in wanted:
        found["platform"] = wanted["platform"]
    return {**found, "count": int(wanted["count"])} if wanted.get("count", "").isdecimal() else found


def _at_home(value: FlagValue, home: str) -> FlagValue:
    """Expand `~/x` with the host's home folder: neither the engine nor the shell expands it in a quoted word."""
    return home + value[1:] if home and isinstance(value, str) and value.startswith("~/") else value


def spell(flags: Mapping[str, FlagValue], schema: FlagSchema) -> tuple[dict[str, FlagValue], dict[str, str]]:
    """Return the flags under this engine's names, and the renamed flags (name in the profile → name in this engine).

    Unknown flags keep the name in the profile.
    """
    spelled: dict[str, FlagValue] = {}
    renamed = {}
    for name, value in flags.items():
        if value is False:
            spelled.update(switched_off(name, schema))
            continue
        engine_name = schema.spell(name) or name
        if engine_name != name:
            renamed[name] = engine_name
        spelled[engine_name] = value
    return spelled, renamed


def spelling_findings(renamed: Mapping[str, str], version: str) -> list[Finding]:
    """Report all flags whose name differs between profile and release in one info finding; it asks for no edit."""
    if not renamed:
        return []
    parts = []
    for name, engine_name in renamed.items():
        span = flag_span(name)
        life = f", removed in {span.gone}" if span and span.gone and not _is_before(version, span.gone) else ""
        parts.append(f"--{engine_name} (in the profile: --{name}{life})")
    return [
        Finding(
            id="flag-spelled-for-release",
            severity=Severity.INFO,
            origin=Origin.PROFILE,
            message=f"passed to SGLang {version} under another name: {', '.join(parts)}",
            why="The launcher passes each flag under the name it has in the host's release; the values do not change.",
            subject=f"flag.{next(iter(renamed))}",
        )
    ]


def _is_before(version: str, other: str) -> bool:
    left, right = parse_version(version), parse_version(other)
    return left is not None and right is not None and left < right


def switched_off(name: str, schema: FlagSchema) -> dict[str, FlagValue]:
    """Return the flags for `name: false`: the `--no-` form if the engine has one, otherwise none: absent means off."""
    flag = schema.find(name).flag
    return {f"no-{schema.spell(name) or name}": True} if flag is not None and flag.negatable else {}


def render_flag(name: str, value: FlagValue) -> list[str]:
    """Return the words of one flag. A value with a leading dash is joined with `=`, or argparse reads it as a flag."""
    match value:
        case True:
            return [f"--{name}"]
        case False:
            return []
        case list():
            return [f"--{name}", *value]
        case str() if value.startswith("-"):
            return [f"--{name}={value}"]
        case _:
            return [f"--{name}", str(value)]


def _port(value: FlagValue, profile: Profile) -> int:
    if isinstance(value, str) and value.isdecimal() and 0 < int(value) < 65536:
        return int(value)
    setting = profile.flags.get("port")
    where = setting.where if setting else profile.path
    raise PlanRefused(f"`{value}` is not a port number (1 to 65535)", where=where)

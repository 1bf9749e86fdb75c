"""Write launch.sh, the script that starts a LaunchPlan on the host: readable, and re-runnable there by hand.

This is the only module that writes shell text. It quotes each value exactly once; secrets come from a file next to the
script.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from launcher.plan.launch_plan import LaunchPlan, render_flag

_HEAD = """\
#!/bin/sh
# Run {run}: profile {profile} ({digest}) on {host}, SGLang {engine}.
# To start it again by hand after the run has ended: sh launch.sh
# Files it writes here: server.log (output), pid (pid, start time and boot id of the engine), rc (its exit code).
set -u
cd "$(dirname "$0")" || exit 111
"""

# The engine inherits the lock (descriptor 9), so the port stays taken until the engine ends.
_LOCK = """
if ! (: >&9) 2>/dev/null; then
  exec 9>>{lock}
  flock -n 9 || {{ echo 'another run holds port {port}' >&2; echo 73 >rc; exit 73; }}
fi
rm -f rc pid asked
"""

# `trap :` and not `trap ''`: the engine would inherit an ignored signal and never drain. The engine runs in the
# foreground of this script: a shell makes a background process ignore SIGINT.
_RUN = """
trap : TERM INT HUP
sh -c '
  start=$(stat=$(cat /proc/$$/stat); set -- ${stat##*) }; echo "${20}")
  echo "$$ $start $(cat /proc/sys/kernel/random/boot_id)" >pid.new && mv pid.new pid
  exec "$@"
' sh \\
"""

_TAIL = """\
  >>server.log 2>&1 </dev/null
rc=$?
echo "$rc" >rc.new && mv rc.new rc
"""
_FORGET = "rm -f secrets.env secrets.yaml\n"


def launch_script(plan: LaunchPlan, run: str) -> str:
    """Return the text of launch.sh."""
    head = _HEAD.format(
        run=run,
        profile=_comment(plan.profile),
        digest=plan.digest,
        host=_comment(plan.host),
        engine=_comment(plan.engine),
    )
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sorted(plan.env.items()))
    exports += f"export SGLANG_LAUNCHER_RUN={shlex.quote(run)}\n"
    secrets = "if [ -r secrets.env ]; then . ./secrets.env; fi\n" if plan.secret_env else ""
    lock = _LOCK.format(lock=tilde(lock_path(plan)), port=plan.server_port)
    return head + exports + secrets + lock + _RUN + _words(plan) + _TAIL + (_FORGET if plan.secret_env else "")


def secret_files(plan: LaunchPlan, values: Mapping[str, str]) -> dict[str, str]:
    """Return the files with the secrets, name → text, for the run's folder, to be readable by its user alone."""
    files = {}
    exported = [name for name in plan.secret_env if name not in plan.secret_flags.values()]
    if exported:
        files["secrets.env"] = "".join(f"export {name}={shlex.quote(values[name])}\n" for name in exported)
    if plan.secret_flags:
        lines = (f"{flag}: {yaml_text(values[name])}\n" for flag, name in plan.secret_flags.items())
        files["secrets.yaml"] = "".join(lines)
    return files


def lock_path(plan: LaunchPlan) -> str:
    """Return the path of the lock file on the host; its lock means that a run holds the port."""
    return f"{plan.work_dir}/locks/port-{plan.server_port}.lock"


def run_folder(plan: LaunchPlan, run: str) -> str:
    """Return the path of the run's folder on the host."""
    return f"{plan.work_dir}/runs/{run}"


def tilde(path: str) -> str:
    """Return a shell word for a path in which a leading `~` still means the home directory."""
    if path == "~" or path.startswith("~/"):
        return '"$HOME"' + (shlex.quote(path[1:]) if len(path) > 1 else "")
    return shlex.quote(path)


def yaml_text(value: str) -> str:
    """Return the text as a double-quoted YAML scalar (every JSON string is one)."""
    return json.dumps(value)


def _words(plan: LaunchPlan) -> str:
    """The command line with one flag per line, so that a diff of two scripts reads like a diff of two profiles."""
    lines = [f"  {tilde(plan.python)} -m sglang.launch_server"]
    if plan.secret_flags:
        lines.append("    --config secrets.yaml")
    for name, value in plan.flags.items():
        words = render_flag(name, value)
        if words:
            lines.append(
                "    " + " ".join(tilde(word) if word.startswith("~") else shlex.quote(word) for word in words)
            )
    return "".join(f"{line} \\\n" for line in lines)


def _comment(text: str) -> str:
    return " ".join(text.split())

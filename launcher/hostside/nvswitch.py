"""Reports whether Fabric Manager is working; without it NVLink over NVSwitch is not usable.

The fabric state of the GPUs comes first: it is also valid in a container, which sees neither the service nor its
process. Hosts without a sign of an NVSwitch are not queried. Part of `host_facts`.
"""

from __future__ import annotations

import os
import re
import subprocess

SERVICE = "nvidia-fabricmanager"
PROCESS = "nv-fabricmanage"  # the kernel keeps 15 characters of a name
FABRIC_STATES = {"completed": "active", "in progress": "activating", "not started": "inactive"}
SECONDS = 3.0


def fabric_manager(topology, devices="/dev", processes="/proc"):
    """Return `active`, `activating`, `inactive` or `failed`; None without an NVSwitch or if the state is unknown."""
    if not may_have_nvswitch(topology, devices):
        return None
    output = answer_of(["nvidia-smi", "--query-gpu=fabric.state", "--format=csv,noheader"])
    states = {FABRIC_STATES.get(line.strip().lower()) for line in output.splitlines()} - {None}
    for state in ("inactive", "activating", "active"):  # one GPU outside the fabric is enough
        if state in states:
            return state
    if not any(name.startswith("nvidia-nvswitch") for name in names_in(devices)):
        return None
    return service_state(processes)


def may_have_nvswitch(topology, devices="/dev"):
    """Return whether the host has an NVSwitch device, or GPUs that are connected by NVLink."""
    if any(name.startswith("nvidia-nvswitch") for name in names_in(devices)):
        return True
    return re.search(r"\bNV\d+\b", topology or "") is not None


def service_state(processes="/proc", seconds=SECONDS):
    """Return the state from the service manager, or `active` if the process is running; None if neither is known."""
    word = answer_of(["systemctl", "is-active", SERVICE], seconds).strip()
    if word in ("active", "activating", "inactive", "failed"):
        return word
    for number in filter(str.isdigit, names_in(processes)):
        try:
            with open(os.path.join(processes, number, "comm")) as handle:
                if handle.read().strip() == PROCESS:
                    return "active"
        except OSError:
            continue
    return None


def answer_of(words, seconds=SECONDS):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              timeout=seconds, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def names_in(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []

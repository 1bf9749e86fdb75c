"""Measures everything on a host that a launch depends on. It imports nothing from the engine.

ARGS: python (engine interpreter or ""), env, work_dir, model, draft, port, host, paths. Prints one JSON object; a value that
could not be measured is null, with a reason under "notes". `launcher.plan.launch_facts` turns it into facts.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import re
import resource
import shutil
import subprocess
import sys
import time

from launcher.hostside.hub_route import hub
from launcher.hostside.kernel_cache import triton_cache
from launcher.hostside.kernel_libraries import kernel_libraries
from launcher.hostside.launch_paths import launch_paths
from launcher.hostside.nvswitch import fabric_manager
from launcher.hostside.process import boot_id, describe, listeners, port_is_free
from launcher.hostside.read_checkpoint import checkpoint

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
GPU_FIELDS = (
    "index,name,uuid,memory.total,memory.used,memory.free,compute_cap,driver_version,pci.bus_id,utilization.gpu"
)
CANDIDATES = ("python3", "python", "~/venv/bin/python", "~/.venv/bin/python", "~/sglang/bin/python",
              "/opt/venv/bin/python", "/opt/sglang/bin/python", "/sgl-workspace/venv/bin/python")  # fmt: skip
# Variables that an engine on this host inherits and rules test, except secrets, known by name as in `launcher.secrets`.
ENGINE_VARIABLES = (
    "SGLANG_", "SGL_", "NCCL_", "CUDA_", "TORCH_", "TRITON_", "LD_", "FLASHINFER_", "GLOO_", "NVSHMEM_", "PYTORCH_",
    "MC_FORCE_", "HF_HUB_OFFLINE", "HF_ENDPOINT",
)  # fmt: skip
SECRET_NAME = re.compile(
    r"(?:\A|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|APIKEY|(?:API|ACCESS|PRIVATE|AUTH|SECRET)_KEY)\Z",
    re.IGNORECASE,
)
# Run by the engine's interpreter: its installed packages, the folder of sglang, the CUDA version torch was built for.
ENGINE_LOOK = r"""
import importlib.metadata as m, importlib.util as u, json, os, re, sys, sysconfig
packages = {}
for d in m.distributions():
    try:
        packages.setdefault(d.metadata["Name"].lower().replace("_", "-"), d.version)
    except Exception:
        pass
def origin(name):
    try:
        spec = u.find_spec(name)
    except Exception:
        spec = None
    return os.path.dirname(spec.origin) if spec and spec.origin else None
def text(folder, name):
    try:
        return open(os.path.join(folder, name)).read() if folder else ""
    except OSError:
        return ""
cuda = re.search(r"^cuda[^=\n]*= *'([\d.]+)'", text(origin("torch"), "version.py"), re.M)
full = re.search(r"__version__ *= *'([^']+)'", text(origin("torch"), "version.py"))
plugins = [e.name for e in m.entry_points().select(group="sglang.srt.platforms")] if sys.version_info >= (3, 10) else []
print(json.dumps(dict(packages=packages, sglang=origin("sglang"), kernels=origin("sgl_kernel"), torch_cuda=cuda and cuda.group(1), plugins=plugins,
                      headers=os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
                      torch=full and full.group(1), python=sys.version.split()[0], executable=sys.executable)))
"""


def main(args):
    notes = []
    engine, tried = engine_facts(args)
    env = {**os.environ, **args["env"]}
    topology = run(["nvidia-smi", "topo", "-m"]) if shutil.which("nvidia-smi") else None
    model = checkpoint(expand(args["model"])) if args["model"] else None
    package = (engine or {}).get("kernels")
    return {
        "host": host(args),
        "gpus": gpus(notes),
        "gpu_processes": gpu_processes(),
        "topology": topology,
        "fabric_manager": fabric_manager(topology),
        "peer_read": run(["nvidia-smi", "topo", "-p2p", "r"]) if shutil.which("nvidia-smi") else None,
        "engine": engine,
        "toolchain": toolchain(args["env"]),
        "libraries": kernel_libraries(package, engine["executable"], env) if package else None,
        "triton_cache": triton_cache(env),
        "paths": launch_paths(args.get("paths") or {}, args["work_dir"]),
        "detach": detach(),
        "port": port(args),
        "model": model,
        "hub": hub(args["model"], env) if model and model.get("hub_id") and not model["in_local_cache"] else None,
        "draft_model": checkpoint(expand(args["draft"])) if args.get("draft") else None,
        "engine_tried": tried,
        "notes": notes,
    }


def host(args):
    user = pwd.getpwuid(os.getuid())
    work = expand(args["work_dir"])
    return {
        "name": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "os": first_line("/etc/os-release", "PRETTY_NAME"),
        "user": user.pw_name,
        "home": os.path.expanduser("~"),
        "boot_id": boot_id(),
        "time": time.time(),
        "cpus": os.cpu_count(),
        "numa_nodes": len([n for n in listed("/sys/devices/system/node") if re.fullmatch(r"node\d+", n)]) or 1,
        "system": platform.system(),
        "peermem": os.path.isdir("/sys/module/nvidia_peermem"),
        "memory": meminfo(),
        "memory_limit": cgroup_limit(),
        "shm": space("/dev/shm"),
        "disk": space(existing(work)),
        "work_dir": work,
        "limits": {"memlock": limit(resource.RLIMIT_MEMLOCK), "nofile": limit(resource.RLIMIT_NOFILE),
                   "nproc": limit(resource.RLIMIT_NPROC)},
        "in_container": os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"),
        "rdma_devices": sorted(listed("/sys/class/infiniband")),
        "proxies": {k: re.sub(r"(\w+://)?.*@", r"\1•••@", v) for k, v in os.environ.items()
                    if k.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")},
        "hf_token": bool(os.environ.get("HF_TOKEN")) or os.path.exists(os.path.expanduser("~/.cache/huggingface/token")),
        "env": {k: v for k, v in os.environ.items() if k.startswith(ENGINE_VARIABLES) and not SECRET_NAME.search(k)},
    }  # fmt: skip


def engine_facts(args):
    """Return facts on the first interpreter with sglang or None, and why each earlier interpreter was passed over.

    Only the configured interpreter is tried when there is one.
    """
    tried = []
    for name in [args["python"]] if args["python"] else [*CANDIDATES, *prepared()]:
        path = expand(name)
        if shutil.which(path) is None:
            tried.append("%s: not found" % name)
            continue
        output = run([path, "-c", ENGINE_LOOK], env={**os.environ, **args["env"]}, timeout=60, keep_errors=True)
        try:
            report = json.loads(output.strip().splitlines()[-1])
        except (ValueError, IndexError):
            tried.append("%s: %s" % (name, (output.strip().splitlines() or ["printed nothing"])[-1][:200]))
            continue
        if report["sglang"]:
            return report, tried
        tried.append("%s: sglang not installed" % name)
    return None, tried


def prepared():
    """Return the interpreter that `make engine` installed in the cache folder, as a list of one or none."""
    root = os.environ.get("SGLANG_LAUNCHER_CACHE") or os.path.expanduser("~/.cache/sglang-launcher")
    try:
        with open(os.path.join(root, "engine.json")) as handle:
            return [json.load(handle)["python"]]
    except (OSError, ValueError, KeyError):
        return []


def gpus(notes):
    if shutil.which("nvidia-smi") is None:
        notes.append("nvidia-smi was not found")
        return None
    text = run(["nvidia-smi", "--query-gpu=" + GPU_FIELDS, "--format=csv,noheader,nounits"], keep_errors=True)
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.count(",") >= 9]
    if not rows:
        notes.append("nvidia-smi: " + (text.strip() or "printed no GPU")[:300])
        return None
    return [dict(zip(GPU_FIELDS.split(","), row)) for row in rows]


def gpu_processes():
    text = run(["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"])
    rows = [[cell.strip() for cell in line.split(",")] for line in (text or "").splitlines() if line.count(",") >= 2]
    return [{"gpu": row[0], "used_mib": row[2], **describe(int(row[1]))} for row in rows if row[1].isdigit()]


def toolchain(env):
    home = env.get("CUDA_HOME") or os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    nvcc = shutil.which("nvcc") or next(
        (p for p in ("%s/bin/nvcc" % home, "/usr/local/cuda/bin/nvcc") if os.path.exists(p)), None
    )
    release = re.search(r"release (\S+),", run([nvcc, "--version"]) or "") if nvcc else None
    smi = re.search(r"CUDA Version: *([\d.]+)", run(["nvidia-smi"]) or "") if shutil.which("nvidia-smi") else None
    return {"cuda_home": home, "nvcc_path": nvcc, "nvcc": release and release.group(1), "driver_cuda": smi and smi.group(1),
            "ninja": shutil.which("ninja"), "gcc": shutil.which("gcc") or shutil.which("cc"), "numactl": shutil.which("numactl"),
            "cuobjdump": shutil.which("cuobjdump")}  # fmt: skip


def detach():
    """Return whether logind kills the processes of a user who logs out, and whether lingering protects this user."""
    configured = ""
    for path in ("/etc/systemd/logind.conf", "/usr/lib/systemd/logind.conf"):
        configured = configured or first_line(path, "KillUserProcesses")
    user = pwd.getpwuid(os.getuid()).pw_name
    return {
        "logind": os.path.isdir("/run/systemd/seats") or os.path.isdir("/run/systemd/sessions"),
        "kill_user_processes": configured.lower() in ("yes", "true", "1", "on"),
        "linger": os.path.exists("/var/lib/systemd/linger/" + user),
        "systemd_run": shutil.which("systemd-run"),
        "setsid": True,
    }


def port(args):
    if not args["port"]:
        return None
    return {"free": port_is_free(args["host"], args["port"]), "holders": [describe(p) for p in listeners(args["port"])]}


def run(words, env=None, timeout=20, keep_errors=False):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              env=env, timeout=timeout, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error) if keep_errors else None
    text = done.stdout.decode("utf-8", "replace")
    return text or (done.stderr.decode("utf-8", "replace") if keep_errors else "")


def meminfo():
    with open("/proc/meminfo") as handle:
        rows = dict(line.split(":") for line in handle)
    return {"total": kib(rows.get("MemTotal")), "available": kib(rows.get("MemAvailable"))}


def cgroup_limit():
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as handle:
                value = handle.read().strip()
            if value.isdigit() and int(value) < 1 << 60:
                return int(value)
        except OSError:
            continue
    return None


def kib(text):
    return int(text.split()[0]) * 1024 if text else None


def limit(kind):
    soft = resource.getrlimit(kind)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def space(path):
    try:
        use = shutil.disk_usage(path)
    except OSError:
        return None
    return {"total": use.total, "free": use.free}


def listed(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def existing(path):
    while path and not os.path.isdir(path):
        path = os.path.dirname(path)
    return path or "/"


def expand(path):
    return os.path.expanduser(os.path.expandvars(path))


def first_line(path, key):
    try:
        with open(path) as handle:
            for line in handle:
                if line.startswith(key + "="):
                    return line.partition("=")[2].strip().strip('"')
    except OSError:
        pass
    return ""


if __name__ == "__main__":
    json.dump(main(ARGS), sys.stdout)

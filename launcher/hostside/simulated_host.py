"""Makes a process look like the host of a launch: GPUs come from facts, and nothing outside its folder is touched.

Whatever the engine asks that is not simulated is a doubt, and a result that rests on a doubt is unknown: connections,
programs, files outside the folder, paths on the host.
"""

from __future__ import annotations

import os
import stat
import sys
import types

from launcher.hostside.stand_ins import StandInClass


def simulate_gpus(torch, gpus, wanted, cuda, folder):
    """Let torch and nvidia-smi report the GPUs of the facts: a list of {name, memory_mib, capability: [major, minor]}.

    `wanted` is CUDA_VISIBLE_DEVICES, or None; a program `nvidia-smi` is written into `folder`.
    """
    write_nvidia_smi(folder, gpus)
    gpus = visible(gpus, wanted)
    torch.version.cuda = cuda
    if not gpus:
        torch.cuda.is_available, torch.cuda.device_count = _constant(False), _constant(0)
        return
    first = gpus[0]
    memory = int(first["memory_mib"]) << 20
    major, minor = first["capability"]
    properties = types.SimpleNamespace(
        name=first["name"], total_memory=memory, major=major, minor=minor, multi_processor_count=132,
        gcnArchName="", uuid="0", warp_size=32,
    )  # fmt: skip
    answers = {
        "is_available": True, "device_count": len(gpus), "get_device_capability": (major, minor),
        "get_device_name": first["name"], "get_device_properties": properties, "mem_get_info": (memory, memory),
        "current_device": 0, "is_initialized": True, "set_device": None, "init": None, "_lazy_init": None,
        "synchronize": None, "empty_cache": None, "get_arch_list": ["sm_%d%d" % (major, minor)],
    }  # fmt: skip
    for name, value in answers.items():
        setattr(torch.cuda, name, _constant(value))


def tolerate(torch):
    """Let a release be imported with a newer torch than its own, and without the operators of kernel packages."""
    register = torch.library.register_fake

    def register_fake(operator, function=None, **options):
        def decorate(inner):
            try:
                return register(operator, inner, **options)
            except RuntimeError:  # an operator that a kernel package would have defined
                return inner

        return decorate if function is None else decorate(function)

    torch.library.register_fake = register_fake
    for name in ("_is_amx_tile_supported", "_init_amx"):
        if not hasattr(torch._C._cpu, name):
            setattr(torch._C._cpu, name, _constant(False))


def _constant(value):
    return lambda *_args, **_options: value


def assume_paths(paths, doubts):
    """Let paths on the host exist: whether they do is a doubt, and nothing may be read from them."""
    for name in ("exists", "isfile", "isdir", "lexists"):
        setattr(os.path, name, _assuming(getattr(os.path, name), frozenset(paths), doubts))


def _assuming(real, paths, doubts):
    def ask(path, *rest):
        if isinstance(path, (str, os.PathLike)) and os.fspath(path) in paths:
            doubts.add("the engine asks whether %s exists" % os.fspath(path))
            return True
        return real(path, *rest)

    return ask


def visible(gpus, wanted):
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves of a host's; the list ends at the first that does not exist."""
    if wanted is None:
        return gpus
    left = []
    for word in filter(None, (part.strip() for part in wanted.split(","))):
        if word.isdigit() and int(word) >= len(gpus):
            break
        left.append(gpus[int(word)] if word.isdigit() else gpus[0])  # an identifier: all GPUs of a host are alike
    return left if wanted.strip() != "-1" else []


def confine(folder, doubts):
    """Deny connections, programs and writing outside a folder from now on; each attempt is a doubt."""
    StandInClass.doubts = doubts
    inside = os.path.realpath(folder) + os.sep

    def deny(text):
        doubts.add(text)
        raise PermissionError(text)

    def is_inside(path):
        try:
            name = os.path.realpath(os.fsdecode(path))
        except (TypeError, ValueError):
            return True  # a file descriptor
        return (name + os.sep).startswith(inside) or name in (os.devnull, "/dev/tty")

    def audit(event, arguments):
        if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
            deny("the engine opens a connection")
        elif event == "open" and _writes(arguments) and not is_inside(arguments[0]):
            deny("the engine writes %s" % (arguments[0],))
        elif event in ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod") and not is_inside(arguments[0]):
            deny("the engine changes %s" % (arguments[0],))
        elif event == "subprocess.Popen" and not os.path.exists(
            os.path.join(folder, os.path.basename(str(arguments[0])))
        ):
            deny("the engine runs %s" % os.path.basename(str(arguments[0])))
        elif event in ("os.system", "os.exec", "os.posix_spawn"):
            deny("the engine runs a program")

    sys.addaudithook(audit)


def _writes(arguments):
    mode, flags = (*arguments, None, None)[1:3]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def simulate_cpus(folder, machine):
    """Let the engine find the processors and the memory of the host: by lscpu, psutil and the limit of the container."""
    import psutil

    cpus, nodes = machine["cpus"], machine["numa_nodes"]
    rows = "\n".join("%d,%d,0,%d" % (number, number, number * nodes // cpus) for number in range(cpus))
    _write_program(os.path.join(folder, "lscpu"), "cat <<'E'\n%s\nE\n" % rows)
    memory = psutil.virtual_memory()._replace(total=machine["memory_bytes"], available=machine["memory_bytes"])
    psutil.virtual_memory = _constant(memory)
    common = sys.modules.get("sglang.srt.utils.common")
    if common is not None:
        vars(common)["get_instance_memory_status"] = _constant(None)  # `memory_bytes` contains the limit


def _write_program(path, text):
    with open(path, "w") as handle:
        handle.write("#!/bin/sh\n" + text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def write_nvidia_smi(folder, gpus):
    """Write a program that answers the one question that the engine asks nvidia-smi: the memory of each GPU in MiB."""
    path = os.path.join(folder, "nvidia-smi")
    lines = "\n".join(str(int(gpu["memory_mib"])) for gpu in gpus)
    _write_program(path, "case \"$*\" in *memory.total*) printf '%%s\\n' '%s';; *) exit 9;; esac\n" % lines)

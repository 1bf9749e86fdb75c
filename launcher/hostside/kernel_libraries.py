"""Reports which shared libraries the engine's kernel package needs and the loader would not find.

The names are read from the ELF files; no library is loaded. CUDA libraries are also installed as Python packages, whose
folders torch adds to the search path, so these folders are searched too. Part of `host_facts`.
"""

from __future__ import annotations

import glob
import os
import re
import struct
import subprocess

CHECKED_NAMES = re.compile(
    r"^lib(cuda|numa|nvrtc|cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|nvJitLink|cupti)\.so\.\d+"
)
CUDA_RUNTIME = re.compile(r"^lib(?:cudart|nvrtc)\.so\.\d+$")
SYSTEM_FOLDERS = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")
MOST_FILES = 40


def kernel_libraries(package, python, env):
    """Return {"missing", "cuda"}: needed libraries that are not found, and the CUDA runtime libraries that are.

    None if the package folder contains no library or the cache of the loader cannot be read.
    """
    files = sorted(glob.glob(os.path.join(glob.escape(package), "**", "*.so"), recursive=True))[:MOST_FILES]
    required = {name for path in files for name in needed(path) if CHECKED_NAMES.match(name)}
    cache = loader_cache()
    if not files or cache is None:
        return None
    available = cache | {name for folder in library_folders(package, python, env) for name in so_names(folder)}
    return {"missing": sorted(required - available), "cuda": sorted(filter(CUDA_RUNTIME.match, available))}


def needed(path):
    """Return the names under DT_NEEDED of a 64-bit little-endian ELF file; an empty list for any other file."""
    try:
        with open(path, "rb") as handle:
            head = handle.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return []
            offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
            handle.seek(offset)
            table = handle.read(size * count)
            segments = [struct.unpack_from("<IIQQQQ", table, size * row) for row in range(count)]
            dynamic = next(row for row in segments if row[0] == 2)
            handle.seek(dynamic[2])
            entries = list(struct.iter_unpack("<QQ", handle.read(dynamic[5] // 16 * 16)))
            values = dict(entries)
            address, length = values[5], min(values[10], 1 << 22)
            home = next(row for row in segments if row[0] == 1 and row[3] <= address < row[3] + row[5])
            handle.seek(address - home[3] + home[2])
            names = handle.read(length)
    except (OSError, struct.error, StopIteration, KeyError):
        return []
    return [
        names[at : names.index(b"\0", at)].decode("ascii", "replace")
        for tag, at in entries
        if tag == 1 and at < len(names)
    ]


def library_folders(package, python, env):
    """Return the folders that the loader and torch search in addition to the loader's cache."""
    site = os.path.dirname(package)
    folders = [package, *glob.glob(package + "*.libs"), os.path.join(site, "torch", "lib")]
    folders += glob.glob(os.path.join(glob.escape(site), "nvidia", "*", "lib*"))
    folders += [os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(python or "/"))), "lib")]
    folders += [folder for folder in (env.get("LD_LIBRARY_PATH") or "").split(":") if folder]
    folders += [*SYSTEM_FOLDERS, *glob.glob("/usr/lib/*-linux-gnu"), *glob.glob("/lib/*-linux-gnu")]
    return folders


def so_names(folder):
    try:
        return [name for name in os.listdir(folder) if ".so" in name]
    except OSError:
        return []


def loader_cache():
    """Return the library names in the cache of the loader, or None if ldconfig cannot print it."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"):
        try:
            done = subprocess.run(
                [program, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return set(re.findall(r"^\s*(\S+\.so\S*) ", done.stdout.decode("utf-8", "replace"), re.M))
    return None

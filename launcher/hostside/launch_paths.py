"""Reports on the files and folders that a launch names: whether each can be read, written, or used as an adapter.

Nothing is created or written: for a folder that does not exist, its nearest existing parent is judged. Part of
`host_facts`.
"""

from __future__ import annotations

import json
import os

from launcher.hostside.read_checkpoint import headers, load


def launch_paths(wanted, work_dir):
    """Return {"read": name → fault or None, "written": the same, "adapters": name → content}.

    `wanted` has the paths of these three kinds by the name of the flag, variable or adapter. Relative paths are meant
    from the working folder.
    """
    places = {kind: {n: place(work_dir, p) for n, p in wanted.get(kind, {}).items()} for kind in ("read", "written")}
    adapters = {name: place(work_dir, path) for name, path in wanted.get("adapters", {}).items()}
    return {
        "read": {name: unreadable(path) for name, path in places["read"].items()},
        "written": {name: unwritable(path) for name, path in places["written"].items()},
        "adapters": {name: adapter(path) for name, path in adapters.items() if os.path.isabs(path)},
    }


def place(work_dir, path):
    return os.path.join(os.path.expanduser(work_dir), os.path.expanduser(path))


def unreadable(path):
    """Return why a path cannot be read, in words; None if it can."""
    if os.path.islink(path) and not os.path.exists(path):
        return "is a link to nothing"
    if not os.path.exists(path):
        return "does not exist"
    if not os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
        return "cannot be read by this user"
    if path.endswith(".json") and os.path.isfile(path):
        try:
            with open(path, "rb") as handle:
                json.loads(handle.read(1 << 22))
        except (OSError, ValueError) as error:
            return "is not JSON: %s" % error
    return None


def unwritable(path):
    """Return why nothing can be written in a folder, or the folder cannot be made; None if it can."""
    nearest = path
    while not os.path.lexists(nearest) and nearest != os.path.dirname(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest):
        return "is a file" if nearest == path else "cannot be made: %s is not a folder" % nearest
    read_only = os.statvfs(nearest).f_flag & os.ST_RDONLY or os.path.realpath(nearest).split("/")[1] in ("proc", "sys")
    if read_only or not os.access(nearest, os.W_OK | os.X_OK):
        return "cannot be written by this user" if nearest == path else "cannot be made in %s" % nearest
    return None


def adapter(path):
    """Return {"fault", "config", "in_features"} of a LoRA adapter's folder; the last: module → width of its input."""
    fault = unreadable(path)
    if fault:
        return {"fault": fault}
    config = load(path, "adapter_config.json")
    if not isinstance(config, dict) or "error" in config:
        return {"fault": "has no adapter_config.json" if config is None else "has an unreadable adapter_config.json"}
    sizes = {name: os.path.getsize(os.path.join(path, name)) for name in os.listdir(path)}
    weights = [name for name in sizes if name.endswith((".safetensors", ".bin", ".pt"))]
    shapes = {}
    headers(path, [name for name in weights if name.endswith(".safetensors")], sizes, shapes)
    widths = {
        name.split(".")[-3]: shape[1]
        for name, shape in shapes.items()
        if name.endswith(".lora_A.weight") and len(shape) == 2
    }
    kept = ("r", "target_modules", "peft_type", "base_model_name_or_path", "use_dora", "modules_to_save", "bias")
    return {
        "fault": None if weights else "has no weights",
        "config": {key: config[key] for key in kept if key in config},
        "in_features": widths,
    }

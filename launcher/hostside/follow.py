"""Follows a run: its log by byte offset, its processes, its end. Prints frames: a JSON line, then raw bytes.

ARGS: folder, run, offset. Frames: {"log": n, "at": offset} + n bytes · {"processes": [...], "cpu": seconds,
"read": bytes} every few seconds · {"replaced": size} when the log shrank · {"end": state, "code": n, "asked": bool} last.
After a lost connection the next write fails, which ends the program.
"""

from __future__ import annotations

import json
import os
import sys
import time

from launcher.hostside.process import is_alive, read_identity, run_pids, run_state, stat_fields, stop_was_asked

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
CHUNK = 1 << 18
SAMPLE_EVERY = 5.0  # seconds
GRACE = 2.0  # seconds to wait for the exit code after the process has ended


def main(args):
    folder = os.path.expanduser(args["folder"])
    path, offset = os.path.join(folder, "server.log"), args["offset"]
    sampled_at = gone_since = 0.0
    while True:
        state, code = run_state(folder)
        offset = send_log(path, offset)
        now = time.monotonic()
        if state == "exited" or (state != "running" and gone_since and now - gone_since > GRACE):
            send_log(path, offset)
            return emit({"end": state, "code": code, "asked": stop_was_asked(folder)})
        gone_since = (gone_since or now) if state != "running" else 0.0
        if now - sampled_at > SAMPLE_EVERY:
            sampled_at = now
            emit(sample(args["run"], read_identity(folder)))
        time.sleep(0.05)


def send_log(path, offset):
    """Send the log from `offset` on; returns the new offset."""
    try:
        with open(path, "rb") as log:
            size = os.fstat(log.fileno()).st_size
            if size < offset:
                emit({"replaced": size})
                offset = 0
            log.seek(offset)
            while True:
                data = log.read(CHUNK)
                if not data:
                    return offset
                emit({"log": len(data), "at": offset}, data)
                offset += len(data)
    except FileNotFoundError:
        return offset


def sample(run, identity):
    """Return what the processes of the run do: evidence of whether a phase without log lines makes progress."""
    ticks = os.sysconf("SC_CLK_TCK")
    rows, cpu, read = [], 0.0, 0
    for pid in run_pids(run, identity) if is_alive(identity) else []:
        fields = stat_fields(pid)
        if not fields:
            continue
        seconds = (int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])) / ticks
        cpu += seconds
        read += read_bytes(pid)
        rows.append({"pid": pid, "name": name_of(pid), "state": fields[0], "cpu": round(seconds, 1)})
    return {"processes": rows[:64], "cpu": round(cpu, 1), "read": read}


def read_bytes(pid):
    try:
        with open("/proc/%d/io" % pid) as handle:
            return next(int(line.split()[1]) for line in handle if line.startswith("rchar:"))
    except (OSError, StopIteration, ValueError):
        return 0


def name_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as handle:
            words = handle.read().split(b"\0")
    except OSError:
        return "?"
    text = b" ".join(words[:3]).decode("utf-8", "replace").strip()
    return text[:60] or "?"


def emit(frame, data=b""):
    sys.stdout.buffer.write(json.dumps(frame).encode() + b"\n" + data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main(ARGS)
    except BrokenPipeError:
        os._exit(0)

"""Selects, on the host, the few lines of a huge log that a diagnosis needs, so that only those are transferred.

ARGS: path, words, lead and follow (lines to keep before and after a hit), same (equal hits to keep), edge (bytes at
both ends), most (bytes in all). Prints `number:line` for each selected line, then `END {"lines", "bytes", "dropped",
"notes"}`, or `END {"missing": reason}`. grep searches for about 400 words at 130 MB/s on one core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque

ARGS = {}  # a placeholder: `bundle` sets the arguments when it sends the program
MOST_CHARS = 262144  # to keep of one line


def main(args):
    path = os.path.expanduser(args["path"])
    notes = []
    try:
        size, total = os.path.getsize(path), count_lines(path)
    except OSError as error:
        sys.stdout.buffer.write(b"END %s\n" % json.dumps({"missing": error.strerror}).encode())
        return
    first, last = edges(path, size, args["edge"])
    selected, dropped = {}, 0
    for number, line in first:
        selected[number] = line
    try:
        dropped = around_words(path, args, selected)
    except FileNotFoundError:
        notes.append("the host has no grep: only the beginning and the end of the log were read")
    for offset, line in enumerate(last):
        selected[total - len(last) + 1 + offset] = line
    out = sys.stdout.buffer
    for number in sorted(selected):
        out.write(b"%d:%s\n" % (number, selected[number]))
    end = {"lines": total, "bytes": size, "dropped": dropped, "notes": notes}
    out.write(b"END %s\n" % json.dumps(end).encode())


def around_words(path, args, selected):
    """Add the lines around every hit to `selected`; returns how many hits or lines were dropped.

    Of equal hits only the first `same` are kept; of more than `most` bytes, the lines in the middle are dropped. Equal
    hits are counted anew for each start of an engine, because the last start is the one that will be judged.
    """
    kept = BoundedLines(args["most"], selected)
    counts, before, following, dropped = {}, deque(maxlen=args["lead"]), 0, 0
    for number, mark, line in grep(path, args):
        new_record = mark is None or b"[20" in line[:96]  # the line between groups also ends a record
        if b"server_args=" in line[:256]:
            counts.clear()
        if mark == b":":
            shape = hash(line[:400].translate(None, b"0123456789"))
            counts[shape] = counts.get(shape, 0) + 1
            if counts[shape] <= args["same"]:
                for row in before:
                    kept.add(*row)
                before.clear()
                following = args["follow"] + 1  # the hit counts as well
                new_record = False
            else:
                dropped += 1
        if new_record:
            following = 0
        if following:
            following -= 1
            kept.add(number, line[:MOST_CHARS])
            continue
        if new_record:
            before.clear()
        if mark is not None:
            before.append((number, line[:MOST_CHARS]))
    selected.update(kept.latest)
    return dropped + kept.dropped


class BoundedLines:
    """Keeps lines up to a size: half of it for the first lines, half for the latest; drops the lines in between."""

    def __init__(self, most, first):
        self.most, self.first, self.latest = most // 2, first, deque()
        self.bytes, self.dropped = [0, 0], 0

    def add(self, number, line):
        if self.bytes[0] < self.most:
            self.first[number] = line
            self.bytes[0] += len(line)
            return
        self.latest.append((number, line))
        self.bytes[1] += len(line)
        while self.bytes[1] > self.most and len(self.latest) > 1:
            self.bytes[1] -= len(self.latest.popleft()[1])
            self.dropped += 1


def grep(path, args):
    """Yield (number, mark, line) of each hit and the lines around it; mark is None between groups."""
    words = ["grep", "-a", "-n", "-F", "-B", str(args["lead"]), "-A", str(args["follow"]), "-f", "-", "--", path]
    env = dict(os.environ, LC_ALL="C")
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n".join(args["words"]).encode() + b"\n")  # about 6 kB: less than the buffer of a pipe
    process.stdin.close()
    for row in process.stdout:
        yield split(row)
    process.wait()


def split(row):
    """Split `12:text` of a hit or `12-text` of a line around it; mark is None for the line between groups."""
    end = 0
    while end < len(row) and row[end : end + 1].isdigit():
        end += 1
    if not end:
        return 0, None, b""
    return int(row[:end]), row[end : end + 1], row[end + 1 :].rstrip(b"\n")


def count_lines(path):
    total, ended = 0, True
    with open(path, "rb") as handle:
        while True:
            data = handle.read(1 << 20)
            if not data:
                return total + (not ended)
            total += data.count(b"\n")
            ended = data.endswith(b"\n")


def edges(path, size, edge):
    """Return the numbered first lines and the last lines of the file, without incomplete ones."""
    with open(path, "rb") as handle:
        head = handle.read(edge)
        handle.seek(max(0, size - edge))
        tail = handle.read()
    first = list(enumerate(head.split(b"\n")[: None if len(head) == size else -1], 1))
    last = tail.split(b"\n")
    if size > edge:
        last = last[1:]
    if last and last[-1] == b"":
        last.pop()
    return [row for row in first if row[1] or row[0] == 1], last


if __name__ == "__main__":
    main(ARGS)

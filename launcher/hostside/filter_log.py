"""The few lines of a huge log that a diagnosis needs, chosen where the log lies, so that only they travel.

ARGS: path, words, lead, follow, same, edge (bytes), most (bytes). Prints `number:line` for each line around a word and
for both ends, then `END {"lines", "bytes", "dropped", "notes"}`, or `END {"missing": why}`. grep finds some 400 words at
130 MB/s on one core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque

ARGS = {}  # put in front of the text when it is sent
MOST_CHARS = 262144  # of one line


def main(args):
    path = os.path.expanduser(args["path"])
    notes = []
    try:
        size, total = os.path.getsize(path), count_lines(path)
    except OSError as error:
        sys.stdout.buffer.write(b"END %s\n" % json.dumps({"missing": error.strerror}).encode())
        return
    first, last = edges(path, size, args["edge"])
    sent, dropped = {}, 0
    for number, line in first:
        sent[number] = line
    try:
        dropped = around_words(path, args, sent)
    except FileNotFoundError:
        notes.append("the host has no grep: only both ends of the log were looked at")
    for offset, line in enumerate(last):
        sent[total - len(last) + 1 + offset] = line
    out = sys.stdout.buffer
    for number in sorted(sent):
        out.write(b"%d:%s\n" % (number, sent[number]))
    end = {"lines": total, "bytes": size, "dropped": dropped, "notes": notes}
    out.write(b"END %s\n" % json.dumps(end).encode())


def around_words(path, args, sent):
    """Put the neighbourhood of every hit into `sent`; how many were left out: equal ones, or beyond the bound.

    Hits are counted for each start of an engine anew, for it is the last start that will be judged.
    """
    kept = Kept(args["most"], sent)
    counts, before, owed, dropped = {}, deque(maxlen=args["lead"]), 0, 0
    for number, mark, line in grep(path, args):
        starts = mark is None or b"[20" in line[:96]  # the line between groups ends a record, too
        if b"server_args=" in line[:256]:
            counts.clear()
        if mark == b":":
            shape = hash(line[:400].translate(None, b"0123456789"))
            counts[shape] = counts.get(shape, 0) + 1
            if counts[shape] <= args["same"]:
                for row in before:
                    kept.add(*row)
                before.clear()
                owed = args["follow"]
                starts = False
            else:
                dropped += 1
        owed = 0 if starts else max(0, owed - 1)
        if owed:
            kept.add(number, line[:MOST_CHARS])
            continue
        if starts:
            before.clear()
        if mark is not None:
            before.append((number, line[:MOST_CHARS]))
    sent.update(kept.latest)
    return dropped + kept.dropped


class Kept:
    """Lines within a bound: half of it for the first, half for the latest; what is between is dropped."""

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
    """(number, mark, line) of each hit and its neighbours; mark None between groups."""
    words = ["grep", "-a", "-n", "-F", "-B", str(args["lead"]), "-A", str(args["follow"]), "-f", "-", "--", path]
    env = dict(os.environ, LC_ALL="C")
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n".join(args["words"]).encode() + b"\n")  # some 6 kB: less than a pipe holds
    process.stdin.close()
    for row in process.stdout:
        yield split(row)
    process.wait()


def split(row):
    """`12:text` of a hit, `12-text` of its neighbour; mark None for the line between groups."""
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
    """Numbered lines at the beginning, and the last lines, as far as they are whole."""
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

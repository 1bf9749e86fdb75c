"""Frames of the `follow` program, wherever the network splits them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from launcher.run.frames import Ended, Frame, FrameReader, LogBytes, Replaced, Sample


def frame(header: dict[str, object], data: bytes = b"") -> bytes:
    return json.dumps(header).encode() + b"\n" + data


FRAMES = [
    frame({"log": 5, "at": 0}, b'a\n{"}'),
    frame({"processes": [{"pid": 1}], "cpu": 1.5, "read": 7}),
    frame({"replaced": 3}),
    frame({"log": 0, "at": 5}),
    frame({"end": "exited", "code": 137}),
]
EXPECTED: list[Frame] = [
    LogBytes(b'a\n{"}', 0),
    Sample(({"pid": 1},), 1.5, 7),
    Replaced(3),
    LogBytes(b"", 5),
    Ended("exited", 137),
]


@given(st.lists(st.integers(1, 40), max_size=60))
def test_frames_survive_any_splitting(sizes: list[int]) -> None:
    data, reader, frames = b"".join(FRAMES), FrameReader(), list[Frame]()
    for size in sizes:
        frames += reader.feed(data[:size])
        data = data[size:]
    frames += reader.feed(data)
    assert frames == EXPECTED


def test_a_greeting_of_the_login_shell_is_skipped() -> None:
    assert list(FrameReader().feed(b"Welcome to gpu-box!\n" + FRAMES[4])) == [EXPECTED[4]]

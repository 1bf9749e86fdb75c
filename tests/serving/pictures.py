"""Reads PNG pictures out of data URLs and says what is on them: a colour, and a simple shape."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections import Counter

Pixel = tuple[int, int, int]
_NAMED: dict[str, Pixel] = {
    "red": (220, 30, 30), "green": (30, 160, 50), "blue": (40, 70, 220), "yellow": (250, 230, 40),
    "orange": (250, 150, 30),
    "purple": (130, 40, 150), "pink": (250, 150, 190), "brown": (130, 80, 40), "black": (10, 10, 10),
    "white": (250, 250, 250), "grey": (128, 128, 128), "cyan": (40, 220, 220),
}  # fmt: skip
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def described(url: str) -> str:
    """Return what a picture shows, colour first; ValueError if it is no readable PNG."""
    head, _, data = url.partition(",")
    if not head.startswith("data:image"):
        raise ValueError("only data URLs are served")
    try:
        pixels, width = decoded(base64.b64decode(data, validate=True))
    except (binascii.Error, zlib.error, struct.error, IndexError) as error:
        raise ValueError(f"cannot identify image file ({error})") from error
    counted = Counter(
        name_of(pixel) for row in pixels[:: max(1, len(pixels) // 64)] for pixel in row[:: max(1, width // 64)]
    )
    ordered = [name for name, _ in counted.most_common()]
    if len(ordered) == 1:
        return ordered[0]
    ground = name_of(pixels[0][0])
    colour = next(name for name in ordered if name != ground)
    return f"{colour} {_shape(pixels, ground)} on a {ground} background"


def _shape(pixels: list[list[Pixel]], ground: str) -> str:
    """Return the shape that stands out, by how much of its box it fills."""
    marked = [
        (row, column)
        for row, line in enumerate(pixels)
        for column, pixel in enumerate(line)
        if name_of(pixel) != ground
    ]
    rows, columns = [row for row, _ in marked], [column for _, column in marked]
    height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
    filled = len(marked) / (height * width)
    if filled > 0.93:
        return "square" if 0.8 < height / width < 1.25 else "rectangle"
    return "circle" if filled > 0.65 else "triangle"


def name_of(pixel: Pixel) -> str:
    """Return the name of the nearest colour."""
    return min(_NAMED, key=lambda name: sum((one - two) ** 2 for one, two in zip(pixel, _NAMED[name], strict=True)))


def decoded(data: bytes) -> tuple[list[list[Pixel]], int]:
    """Return the pixels of a PNG with 8 bits a channel, and its width."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("cannot identify image file")
    place, packed, palette = 8, b"", b""
    width = height = kind = 0
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        if name == b"IHDR":
            width, height, depth, kind, _, _, laced = struct.unpack(">IIBBBBB", body)
            if depth != 8 or laced:
                raise ValueError("only plain pictures of 8 bits are read")
        elif name == b"IDAT":
            packed += body
        elif name == b"PLTE":
            palette = body
        place += 12 + length
    rows = _unfiltered(zlib.decompress(packed), width, height, _CHANNELS[kind])
    return [[_pixel(row, column, kind, palette) for column in range(width)] for row in rows], width


def _pixel(row: bytes, column: int, kind: int, palette: bytes) -> Pixel:
    start = column * _CHANNELS[kind]
    if kind == 3:
        start, row = 3 * row[start], palette
    if kind in {0, 4}:
        return row[start], row[start], row[start]
    return row[start], row[start + 1], row[start + 2]


def _unfiltered(raw: bytes, width: int, height: int, channels: int) -> list[bytes]:
    """Undo the filters of a PNG's lines."""
    stride, rows, before = width * channels, list[bytes](), bytes(width * channels)
    for number in range(height):
        start = number * (stride + 1)
        kind, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for place in range(stride):
            left = line[place - channels] if place >= channels else 0
            up, corner = before[place], before[place - channels] if place >= channels else 0
            line[place] = (line[place] + _predicted(kind, left, up, corner)) & 255
        before = bytes(line)
        rows.append(before)
    return rows


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda value: abs(guess - value))
    return (0, left, up, (left + up) // 2)[kind]


def painted(colour: str, size: int = 32) -> str:
    """Return a data URL of a picture in one colour."""
    line = b"\x00" + bytes(_NAMED[colour]) * size
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(line * size)),
        (b"IEND", b""),
    ]
    packed = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + packed).decode()

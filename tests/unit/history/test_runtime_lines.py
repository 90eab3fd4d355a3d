"""Lines that a container runtime split, and how much work it is to join them."""

import json
from itertools import chain

import pytest

from app.adapters.history import runtime_lines
from tests import draws

HEAD = b"2026-01-02T03:04:05.123456789Z stdout "
PARTS = 500_000


@draws.in_turn(
    "refusals",
    each_day="unit/history/test_runtime_lines.py::"
    "test_joining_the_parts_of_a_line_copies_each_byte_once",
)
def test_line_of_many_parts_is_joined_in_one_pass():
    """Each part copied with all before it is 10 TB, more than the time of a test allows."""
    part = HEAD + b"P " + b"x" * 80
    parts = ((at, part) for at in range(1, PARTS + 1))
    ends = iter([(PARTS + 1, HEAD + b"F end")])
    ((number, line),) = runtime_lines.joined(chain(parts, ends), 1 << 30)
    assert number == 1
    assert line == HEAD + b"F " + b"x" * (80 * PARTS) + b"end"


class CountingBuffer(bytearray):
    """A buffer that counts the bytes that are copied into it, and into new ones made from it."""

    copied = 0

    def __init__(self, content: bytes = b"") -> None:
        super().__init__(content)
        CountingBuffer.copied += len(content)

    def __iadd__(self, content: bytes) -> "CountingBuffer":
        CountingBuffer.copied += len(content)
        return super().__iadd__(content)

    def __add__(self, content: bytes) -> "CountingBuffer":
        return CountingBuffer(bytes(self) + content)

    def __bytes__(self) -> bytes:
        CountingBuffer.copied += len(self)
        return bytes(memoryview(self))


def test_joining_the_parts_of_a_line_copies_each_byte_once(monkeypatch):
    """Once into the buffer, and once from it into the line."""
    monkeypatch.setattr(CountingBuffer, "copied", 0)
    monkeypatch.setattr(runtime_lines, "bytearray", CountingBuffer, raising=False)
    parts = [(at, HEAD + b"P " + b"x" * 80) for at in range(1, 301)]
    ((_, line),) = runtime_lines.joined(iter([*parts, (301, HEAD + b"F end")]), 1 << 20)
    assert line == HEAD + b"F " + b"x" * (80 * 300) + b"end"
    assert CountingBuffer.copied == 2 * len(line)


def test_line_beyond_the_bound_is_given_as_far_as_it_goes():
    lines = [(at, HEAD + b"P " + b"x" * 80) for at in range(1, 11)]
    joined = list(runtime_lines.joined(iter(lines), 300))
    assert [number for number, _ in joined] == [1, 5, 9]
    assert b"".join(line.removeprefix(HEAD + b"F ") for _, line in joined) == b"x" * 800


def of_docker(text, stream="stdout"):
    entry = {"log": text, "stream": stream, "time": "2026-01-02T03:04:05Z"}
    return json.dumps(entry, separators=(",", ":")).encode()


def test_lines_that_docker_split_at_its_buffer_are_joined_by_stream():
    whole = json.dumps({"text": "ä" * 20_000}, ensure_ascii=False) + "\n"
    packed = whole.encode()
    texts = [packed[at : at + 16_384].decode("utf-8", "replace") for at in (0, 16_384, 32_768)]
    other = of_docker("short\n", "stderr")
    lines = [of_docker(texts[0]), other, of_docker(texts[1]), of_docker(texts[2]), other]
    joined = list(runtime_lines.joined(iter(enumerate(lines, start=1)), 1 << 20))
    assert [number for number, _ in joined] == [2, 1, 5]
    assert json.loads(joined[1][1])["log"] == "".join(texts)


@pytest.mark.parametrize("text", ["no break", "x" * 16_384 + "\n", "x" * 9_000])
def test_other_lines_of_docker_stay_as_they_are(text):
    lines = [(1, of_docker(text)), (2, of_docker("next\n"))]
    assert list(runtime_lines.joined(iter(lines), 1 << 20)) == lines


def test_message_that_a_journal_keeps_as_bytes_is_text():
    said = '\x1b[1mI0102 a\u00e4 "b"\x1b[0m'
    kept = json.dumps({"MESSAGE": list(said.encode()), "PRIORITY": "6"}).encode()
    assert json.loads(runtime_lines.joined_content(kept, 1 << 20))["MESSAGE"] == said
    odd = b'{"MESSAGE": [256, 1]}'
    assert runtime_lines.joined_content(odd, 1 << 20) == odd

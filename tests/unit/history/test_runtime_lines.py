"""Lines that a container runtime split, and how much work it is to join them."""

from itertools import chain

from app.adapters.history import runtime_lines

HEAD = b"2026-01-02T03:04:05.123456789Z stdout "
PARTS = 500_000


def test_line_of_many_parts_is_joined_in_one_pass():
    """Each part copied with all before it is 10 TB, more than the time of a test allows."""
    part = HEAD + b"P " + b"x" * 80
    parts = ((at, part) for at in range(1, PARTS + 1))
    ends = iter([(PARTS + 1, HEAD + b"F end")])
    ((number, line),) = runtime_lines.joined(chain(parts, ends), 1 << 30)
    assert number == 1
    assert line == HEAD + b"F " + b"x" * (80 * PARTS) + b"end"


def test_line_beyond_the_bound_is_given_as_far_as_it_goes():
    lines = [(at, HEAD + b"P " + b"x" * 80) for at in range(1, 11)]
    joined = list(runtime_lines.joined(iter(lines), 300))
    assert [number for number, _ in joined] == [1, 5, 9]
    assert b"".join(line.removeprefix(HEAD + b"F ") for _, line in joined) == b"x" * 800

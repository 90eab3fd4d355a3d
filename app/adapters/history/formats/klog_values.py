"""Values of klog that go over several lines, joined into the line of their entry.

I0102 03:04:05.000006  1 a.go:1] "Failed" err=<
    the first line of the value, behind a tab
    the second line
 > pod="ns/a"
"""

import json
from collections.abc import Iterator

LINES_MAX = 1_000
"""Lines of a value that are joined; of a longer one, each line stays a line."""


def joined(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with the values of an entry quoted on its line; it keeps its number."""
    begin, head, value = 0, "", list[str]()
    for number, line in lines:
        if head:
            if line.startswith("\t") and len(value) < LINES_MAX:
                value.append(line[1:].rstrip())
                continue
            if line.startswith(" >"):
                line = head[:-1] + json.dumps("\n".join(value)) + line[2:]
                number = begin
            else:
                yield begin, head
                yield from ((begin, each) for each in value)
            head = ""
        bare = line.rstrip()
        if bare.endswith("=<"):
            begin, head, value = number, bare, []
        else:
            yield number, line
    if head:
        yield begin, head
        yield from ((begin, each) for each in value)

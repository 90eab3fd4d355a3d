"""The bodies in what kubectl and other clients in Go log with -v=8 and more.

    request.go:1351] Request Body: {"kind":"Pod",…}          on its line
    type.go:252] "Response Body" body="{\\"kind\\":\\"Pod\\",…}"   between quotes
    type.go:252] "Response Body" body=<                      on the lines up to >
        00000000  6b 38 73 00 0a 09 0a 02  76 31 12 03 …     also in protobuf

A body that was sent is no object of the cluster: the server may change or refuse it. What it stored
is in its answer.
"""

import json
import re
from dataclasses import dataclass, field

from app.adapters.history import json_text
from app.adapters.history.limits import ImportLimits
from app.adapters.history.storage import stored_values
from app.domain.errors import InputError

_BODY = re.compile(r"\] \"?(?P<side>Request|Response) Body(?:\" body=|:)\s*(?P<rest>.*)$")
_CLOSE = re.compile(r"\s*>\s*$")
_DUMPED = re.compile(r"\s*(?P<at>[0-9a-f]{8}) {2}(?P<bytes>(?:[0-9a-f]{2} {1,2}){1,16})\s*(?:\||$)")
_MARK = " Body"
"""What a line needs to be looked at."""

CUT = "a body in protobuf breaks off here; -v=10 logs all of it"
UNKNOWN = "a body in protobuf of a kind that redra does not read"


@dataclass(slots=True)
class Bodies:
    """The lines of a text with the bodies of answers as JSON, and without those of requests.

    `sent` counts the bodies of requests; `damage` holds the problems of the others.
    """

    lines: list[str]
    sent: int = 0
    damage: list[InputError] = field(default_factory=list)


def plain(lines: list[str], place: str, first: int, limits: ImportLimits) -> Bodies:
    """The lines, as many as before; `first` is the number of the first one."""
    bodies = Bodies(lines)
    for at, line in enumerate(lines):
        match = _BODY.search(line) if _MARK in line else None
        if match is None:
            continue
        if bodies.lines is lines:
            bodies.lines = list(lines)
        begin, end = _below(lines, at, match["rest"])
        if match["side"] == "Request":
            bodies.sent += 1
            bodies.lines[at:end] = [""] * (end - at)
        elif match["rest"].startswith('"'):
            bodies.lines[at] = _unquoted(match["rest"]) or line
        elif begin < end and _DUMPED.match(lines[begin]):
            problem = _show(bodies, begin, end, place, limits)
            where = f"{place}:{first + begin}"
            bodies.damage += [InputError(problem, place=where)] if problem else []
    return bodies


def _below(lines: list[str], at: int, rest: str) -> tuple[int, int]:
    """The lines of a body that begins in a line, first and behind the last."""
    if rest == "<":
        end = at + 1
        while end < len(lines) and not _CLOSE.match(lines[end]) and not _BODY.search(lines[end]):
            end += 1
        return at + 1, end
    end = at + 1
    while not rest and end < len(lines) and _DUMPED.match(lines[end]):
        end += 1
    return at + 1, end


def _unquoted(rest: str) -> str:
    """The text that Go quoted, if it is on one line; else empty."""
    try:
        text, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return ""
    return "" if "\n" in text.strip() else text.strip()


def _show(bodies: Bodies, begin: int, end: int, place: str, limits: ImportLimits) -> str:
    """Put the object of a hexdump in place of its first line. The problem, if it has none."""
    content = b""
    for line in bodies.lines[begin:end]:
        match = _DUMPED.match(line)
        if match is None or int(match["at"], 16) != len(content):
            return CUT
        content += bytes.fromhex(match["bytes"])
    try:
        stored = stored_values.decode(content, place, limits)
    except InputError:
        return CUT
    if stored is None or stored.losses:
        return UNKNOWN
    text = json_text.encode(stored.tree).decode()
    bodies.lines[begin:end] = [text, *[""] * (end - begin - 1)]
    return ""

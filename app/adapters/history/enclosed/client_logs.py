"""The bodies in what kubectl and other clients in Go log with -v=8 and more.

    request.go:1351] Request Body: {"kind":"Pod",…}          on its line
    type.go:252] "Response Body" body="{\\"kind\\":\\"Pod\\",…}"   between quotes
    type.go:252] "Response Body" body=<                      on the lines up to >
        00000000  6b 38 73 00 0a 09 0a 02  76 31 12 03 …     also in protobuf

A table (`kubectl get`) does not name its kind and namespace; the path of the request above it does,
and is given to it as its `selfLink`, which older servers wrote themselves.

    round_trippers.go:463] GET https://10.0.0.1:6443/api/v1/namespaces/shop/pods?limit=500
    round_trippers.go:527] "Request" verb="GET" url="https://10.0.0.1:6443/api/v1/…"

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
_REQUEST = re.compile(
    r"\] (?:\"(?P<side>Request|Response)\" verb=\"GET\" url=\"|GET )"
    r"https?://[^/\s]+(?P<path>/[^\s\"]*)(?P<rest>.*)$"
)
_ANSWERED = re.compile(r"\] (?:Response Status:|\"Response\" status=)")
_STATUS = re.compile(r"\"? \d{3} ")
_TABLE = re.compile(r'\s*\{\s*"kind":\s*"Table"')
_MARKS = (" Body", "] GET ", '] "Re', "] Response")
"""What a line needs one of to be looked at."""

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
    requests = _Requests()
    for at, line in enumerate(lines):
        if not any(mark in line for mark in _MARKS):
            continue
        match = _BODY.search(line)
        if match is None:
            requests.note(line)
            continue
        if bodies.lines is lines:
            bodies.lines = list(lines)
        begin, end = _below(lines, at, match["rest"])
        if match["side"] == "Request":
            bodies.sent += 1
            bodies.lines[at:end] = [""] * (end - at)
            continue
        path = requests.of_body()
        if match["rest"].startswith('"'):
            bodies.lines[at] = _with_path(_unquoted(match["rest"]) or line, path)
        elif match["rest"] != "<":
            bodies.lines[at] = _with_path(line, path, match.start("rest"))
        elif begin < end:
            bodies.lines[begin] = _with_path(bodies.lines[begin], path)
        if begin < end and _DUMPED.match(lines[begin]):
            problem = _show(bodies, begin, end, place, limits)
            where = f"{place}:{first + begin}"
            bodies.damage += [InputError(problem, place=where)] if problem else []
    return bodies


class _Requests:
    """The requests above the body of an answer. Clients may have several open at a time."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._answered: list[str] = []

    def note(self, line: str) -> None:
        """Remember the request in a line, or that it was answered."""
        named = _REQUEST.search(line)
        if named is not None:
            path = named["path"]
            if named["side"] != "Response" and not _STATUS.match(named["rest"]):
                self._open.append(path)
                return
            self._open = [each for each in self._open if each != path]
            self._answered.append(path)
        elif _ANSWERED.search(line):
            # Which of several was answered, the line does not say.
            self._answered += self._open
            self._open = []

    def of_body(self) -> str:
        """The path of the request that the next body answers; empty unless only one can be."""
        paths = self._answered or self._open
        self._answered, self._open = [], []
        return paths[0] if len(paths) == 1 else ""


def _with_path(line: str, path: str, begin: int = 0) -> str:
    """The line, in which a table has the path of its request; other lines as they are."""
    if not path or not _TABLE.match(line, begin):
        return line
    try:
        table, end = json.JSONDecoder().raw_decode(line, line.index("{", begin))
    except ValueError:
        return line
    metadata = table.get("metadata") or {}
    if not isinstance(metadata, dict) or line[end:].strip():
        return line
    table["metadata"] = {"selfLink": path, **metadata}
    return line[:begin] + json.dumps(table)


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

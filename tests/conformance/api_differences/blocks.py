"""Blocks of recorded differences, as values."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_REQUEST = re.compile(r"##### (\w+) (\w+) :: (\w+) (/\S*) ?(.*) ct=(\S*) ?(\{.*\})?\s*", re.DOTALL)
_WATCH = re.compile(r"##### (\w+) (\w+) :: (WATCH) (/\S*) ?(.*)()()", re.DOTALL)
_TABLE = re.compile(r"##### (\w+) (\w+) :: (TABLE) (\S+ \S+)()()()")
BODY_CHARACTERS_MAX = 300
"""Longer bodies are cut in the files."""


@dataclass(frozen=True)
class Hunk:
    """A part where answers differed: the real lines and redra's earlier lines, with context."""

    real: tuple[str, ...]
    ours: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A request, and the parts of its answers that differed."""

    key: str
    title: str
    kind: str
    section: str
    method: str
    path: str
    query: dict[str, str]
    body: str
    content_type: str
    headers: dict[str, str]
    namespace: str
    hunks: tuple[Hunk, ...]


def read(text: str) -> list[Block]:
    """Reads the blocks of a file; a title that is no request has an empty method."""
    everywhere = re.search(r"dt\d+", text)
    seen: Counter[str] = Counter()
    blocks = []
    for raw in re.split(r"(?m)^(?=##### )", text):
        title, _, lines = raw.partition("--- REAL\n")
        if not title.strip():
            continue
        seen[title] += 1
        block = _block(title.strip(), lines, seen[title], everywhere.group() if everywhere else "")
        blocks.append(block)
    return blocks


def _block(title: str, lines: str, occurrence: int, everywhere: str) -> Block:
    digest = hashlib.sha256(title.encode()).hexdigest()[:10]
    match = _REQUEST.fullmatch(title) or _WATCH.fullmatch(title) or _TABLE.fullmatch(title)
    kind, section, method, path, rest, content_type, headers = (
        match.groups() if match else (title.split()[1], "", "", "", "", "", "")
    )
    query, body = _query_and_body(rest)
    namespace = re.search(r"dt\d+", title)
    return Block(
        key=digest if occurrence == 1 else f"{digest}-{occurrence}",
        title=title,
        kind=kind,
        section=section,
        method=method,
        path=path,
        query={name: str(value) for name, value in query.items()},
        body=body,
        content_type="" if content_type == "None" else content_type,
        headers=json.loads(headers.replace("'", '"')) if headers else {},
        namespace=namespace.group() if namespace else everywhere,
        hunks=tuple(_hunks(lines)),
    )


def _query_and_body(rest: str) -> tuple[dict[str, str], str]:
    """Parses `{query} note body`, each of which may be missing."""
    query: dict[str, str] = {}
    if rest.startswith("{"):
        query, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:]
    rest = rest.removeprefix(" ")
    if rest.startswith(" "):
        return query, rest[1:]
    begin = re.search(r"(^| )[\[{]", rest)
    return query, rest[begin.start() :].strip() if begin else ""


def _hunks(lines: str) -> Iterator[Hunk]:
    body = lines.partition("\n")[2].rstrip("\n")
    for raw in re.split(r"(?m)^@@.*@@\n", body)[1:]:
        part = raw.rstrip("\n").split("\n")
        real = [line[1:] for line in part if line[:1] in ("-", " ")]
        ours = [line[1:] for line in part if line[:1] in ("+", " ")]
        yield Hunk(real=_trimmed(real), ours=_trimmed(ours))


def _trimmed(lines: list[str]) -> tuple[str, ...]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return tuple(lines)

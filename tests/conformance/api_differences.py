"""Replays the requests of recorded differences to a real API server, and says which are gone.

    python -m tests.conformance.api_differences [FILE…] [--show]

A block of a file is a request and the parts of the two answers that differed. The request is sent
again, over what a fixture makes for it, and each part of the real answer has to stand in ours as it
is, after the same masking. The rest of an answer is the same by the way the blocks were made.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from app.domain.objects.profile import Profile
from tests.api.serving import Server, serving
from tests.shared_data import shared_path

PROFILE = Profile(version="1.36.2")
FILES = ("d1.txt", "d2.txt")
_HEADER = re.compile(r"##### (\w+) (\w+) :: (\w+) (\S+) ?(.*) ct=(\S*) ?(\{.*\})?\s*", re.DOTALL)
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class Block:
    """A request, and what of the real answer ours lacked: runs of lines that follow each other."""

    title: str
    kind: str
    section: str
    method: str
    path: str
    query: dict[str, str]
    body: str
    content_type: str
    headers: dict[str, str]
    parts: tuple[tuple[str, ...], ...]

    @property
    def namespace(self) -> str:
        found = re.search(r"dt\d+", self.title)
        return found.group() if found else ""


@dataclass
class Result:
    """What became of the blocks of a file."""

    gone: list[Block] = field(default_factory=list)
    remaining: list[tuple[Block, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def read(text: str) -> Iterator[Block | str]:
    """The blocks of a file; the titles of those that are no requests."""
    for raw in re.split(r"(?m)^(?=##### )", text):
        if not raw.strip():
            continue
        title, marker, lines = raw.partition("--- REAL\n")
        found = _HEADER.fullmatch(title)
        if found is None or not marker:
            yield title.strip()
            continue
        kind, section, method, path, rest, content_type, headers = found.groups()
        query, body = _query_and_body(rest)
        yield Block(
            title=title.strip(),
            kind=kind,
            section=section,
            method=method,
            path=path,
            query=query,
            body=body,
            content_type="" if content_type == "None" else content_type,
            headers=json.loads(headers.replace("'", '"')) if headers else {},
            parts=tuple(_parts(lines)),
        )


def _query_and_body(rest: str) -> tuple[dict[str, str], str]:
    """`{query} note body`, each of which may be missing."""
    query: dict[str, str] = {}
    if rest.startswith("{"):
        query, end = json.JSONDecoder().raw_decode(rest)
        rest = rest[end:]
    rest = rest.removeprefix(" ")
    if rest.startswith(" "):
        return query, rest[1:]
    begin = re.search(r"(^| )[\[{]", rest)
    return query, rest[begin.start() :].strip() if begin else ""


def _parts(lines: str) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    for line in lines.split("\n")[1:]:
        if line.startswith("@@"):
            if part:
                yield tuple(part)
            part = []
        elif line.startswith(("-", " ")):
            part.append(line[1:])
    while part and not part[-1]:
        part.pop()
    if part:
        yield tuple(part)


CONTAINER = {"name": "a", "image": "b"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
CLAIM_SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
DEPLOYMENT = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
FIXTURES: dict[str, dict[str, Any]] = {
    "configmaps/a": {"data": {"a": "1"}, "immutable": True},
    "configmaps/p": {"metadata": {"labels": {"l": "1"}}, "data": {"a": "1"}},
    "configmaps/ap": {"data": {"x": "1"}},
    "configmaps/xb": {"metadata": {"labels": {"d": "1"}, "finalizers": ["a.b/c"]}},
    "configmaps/xe": {"metadata": {"labels": {"d": "1"}}, "data": {"a": "1"}},
    "configmaps/xf": {"metadata": {"labels": {"d": "1"}}, "data": {"a": "1"}},
    "deployments/sd": {"spec": DEPLOYMENT},
    "deployments/sc": {"spec": DEPLOYMENT},
    "resourceclaims/l0": {"spec": CLAIM_SPEC},
    "resourceclaims/l1": {"metadata": {"labels": {"g": "x"}}, "spec": CLAIM_SPEC},
    "services/ss": {"spec": {"selector": {"a": "b"}, "ports": [{"name": "p1", "port": 80}]}},
    "pods/su": {"spec": {"schedulerName": "none", "containers": [CONTAINER]}},
    "pods/b1": {"spec": {"nodeName": "somewhere", "containers": [CONTAINER]}},
}
"""What a request finds, by the end of the path of an object; the namespace of the block too."""


async def replay(block: Block, others: list[Block]) -> str:
    """The answer to the request of a block, masked and laid out as in the files."""
    async with serving(profile=PROFILE) as server:
        if block.namespace:
            await server.raw("POST", "/api/v1/namespaces", {"metadata": {"name": block.namespace}})
        await _prepare(server, block, others)
        answer = await _send(server, block)
        return _laid_out(answer)


async def _prepare(server: Server, block: Block, others: list[Block]) -> None:
    """Make the object that is named, or the objects of the collection that is read."""
    collection, _, rest = block.path.partition(f"{block.namespace}/")
    is_list = block.method in ("GET", "WATCH", "DELETE") and "/" not in rest
    for name, tree in FIXTURES.items():
        resource, _, own = name.partition("/")
        if (rest == resource and is_list) or f"{rest}/".startswith(f"{name}/"):
            path = f"{collection}{block.namespace}/{resource}"
            metadata = {"name": own, **tree.get("metadata", {})}
            await server.raw(
                "POST", f"{path}?fieldManager=python-requests", {**tree, "metadata": metadata}
            )
    for other in others:
        made = f'"name": "{block.path.rpartition("/")[2]}"'
        is_maker = other.method == "POST" and block.path.startswith(other.path + "/")
        if is_maker and made in other.body and other is not block:
            await _send(server, other)


async def _send(server: Server, block: Block) -> Any:
    method = "GET" if block.method == "WATCH" else block.method
    headers = {"user-agent": "python-requests/2", **block.headers}
    if block.content_type:
        headers["content-type"] = block.content_type
    with anyio.fail_after(20):
        return await server.client.request(
            method, block.path, params=block.query, content=block.body or None, headers=headers
        )


def _laid_out(answer: Any) -> str:
    """The status line and the body, as the blocks write them."""
    warnings = ", ".join(answer.headers.get_list("warning"))
    head = f"{answer.status_code} {answer.headers.get('content-type', '')} W={warnings}"
    try:
        tree = _masked(answer.json())
    except ValueError:
        return f"{head}\n{answer.text}"
    text = json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{head}\n" + re.sub(r'(?m)^( *"[^"\n]*"): "', r'\1:"', text)


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, str):
        if key in ("resourceVersion", "continue") and value:
            return "<rv>" if key == "resourceVersion" else "<c>"
        return _UID.sub("<uid>", _TIME.sub("<ts>", value))
    return value


def missing(block: Block, answer: str) -> str:
    """The first part of the real answer that ours lacks; empty when it has all."""
    lines = answer.split("\n")
    if block.method == "WATCH":
        lines[0] = lines[0].partition(" ")[0]
    for part in block.parts:
        wanted = list(part)
        width = len(wanted)
        if all(lines[at : at + width] != wanted for at in range(len(lines) - width + 1)):
            return "\n".join(wanted)
    return ""


async def compare(text: str) -> Result:
    """Replay every block of a file."""
    result = Result()
    found = list(read(text))
    blocks = [block for block in found if isinstance(block, Block)]
    result.unread = [title for title in found if isinstance(title, str)]
    for block in blocks:
        try:
            answer = await replay(block, blocks)
        except TimeoutError:
            result.remaining.append((block, "no answer"))
            continue
        lacks = missing(block, answer)
        if lacks:
            result.remaining.append((block, lacks + "\n=== ours\n" + answer))
        else:
            result.gone.append(block)
    return result


def main() -> None:
    """Print counts by file and kind, and the titles of what remains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--show", action="store_true", help="print what is lacking")
    options = parser.parse_args()
    files = options.files or [shared_path("api-differences", name) for name in FILES]
    for path in files:
        result = anyio.run(compare, path.read_text(encoding="utf-8"))
        for block, lacks in result.remaining:
            sys.stdout.write(f"{block.title[:200]}\n")
            if options.show:
                sys.stdout.write(f"{lacks}\n\n")
        kinds = Counter(block.kind for block, _ in result.remaining)
        counts = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
        sys.stdout.write(
            f"{path.name}: {len(result.gone)} gone, {len(result.remaining)} remaining ({counts}), "
            f"{len(result.unread)} not requests\n"
        )


if __name__ == "__main__":
    main()

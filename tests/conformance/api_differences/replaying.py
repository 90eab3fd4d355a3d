"""Sends the request of a block again, to a server that has the objects of the request."""

import json
import re
from collections.abc import Sequence
from typing import Any

import anyio

from app.adapters.clock import SystemClock
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import Server, serving
from tests.conformance.api_differences.blocks import BODY_CHARACTERS_MAX, Block
from tests.conformance.api_differences.given import LISTED, object_for, table_object
from tests.patience import PATIENCE_SECONDS

PROFILE = Profile(version="1.36.2", gates={"DRAResourcePoolStatus": True})
MANAGER = "fieldManager=python-requests"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_AGE = re.compile(r"\d+[smh]")
TABLE_ERROR_CHARACTERS = 200
"""So much of an error stands in a block about a table."""
_OBJECT_PATH = re.compile(
    r"(/api/v1/|/apis/[^/]+/[^/]+/)(?:namespaces/(dt\d+)/)?([a-z]+)(?:/([^/]+))?(?:/.*)?"
)
_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<ts>"),
    (re.compile(r'("clusterIP":")10[\d.]+'), r"\1<ip>"),
    (re.compile(r'^( +")10[\d.]+("?)$'), r"\1<ip>\2"),
    (re.compile(r'(\\*"resourceVersion\\*":\\*")\d+'), r"\1<rv>"),
    (re.compile(r"(ResourceVersion: |resource version: |current: )\d+"), r"\1<rv>"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1<rv>"),
    (re.compile(r"(Bad_)[a-z0-9]{5}"), r"\1<random>"),
    (re.compile(r'("serverAddress":)".*"'), r"\1<address>"),
    (re.compile(r'("description":)".*"'), r"\1<words>"),
    (re.compile(r'^( *resourceVersion: )"\d+"'), r"\1<rv>"),
    (re.compile(r"\b\d+(ms|s)\b"), r"<n>\1"),
)


class Hurried(SystemClock):
    """A clock that advances by a second with each request, so that times show the order."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0

    def now(self) -> Instant:
        """The present instant, and a second for each request."""
        return Instant(super().now() + self.ahead * SECOND)


def masked(line: str) -> str:
    """A line without the parts that differ between any two servers."""
    for pattern, replacement in _MASKS:
        line = pattern.sub(replacement, line)
    return line


async def replay(block: Block, others: Sequence[Block], entry: dict[str, Any]) -> str:
    """The answer to a block's request, laid out as in the files.

    `entry` is what the data file knows of the block: `given` are requests that go before it, after
    which nothing else is made when it is `bare`, and `rest` completes a body that the file has cut.
    """
    clock = Hurried()
    async with serving(profile=PROFILE, clock=clock) as server:
        await server.raw("POST", "/api/v1/namespaces", {"metadata": {"name": block.namespace}})
        for method, path, tree, *content_type in entry.get("given", ()):
            clock.ahead += 1
            target = path.replace("{namespace}", block.namespace)
            body = json.dumps(tree).replace("{namespace}", block.namespace).encode()
            await server.raw(
                method,
                f"{target}{'&' if '?' in target else '?'}{MANAGER}",
                body,
                content_type=content_type[0] if content_type else "application/json",
            )
        if not entry.get("bare"):
            await _prepare(server, block, others)
        clock.ahead += 1
        with anyio.fail_after(PATIENCE_SECONDS):
            answer = await _send(server, block, block.body + entry.get("rest", ""))
    layout = {"WATCH": _stream, "TABLE": _table}.get(block.method, _body)
    return layout(answer)


async def _prepare(server: Server, block: Block, others: Sequence[Block]) -> None:
    """Make the object that is named, or the objects of the collection that is read."""
    if block.method == "TABLE":
        path, tree = table_object(block)
        if len(tree) > 1 or "serviceaccounts" in path:
            await server.raw("POST", path, tree)
        return
    match = _OBJECT_PATH.fullmatch(block.path)
    if match is None:
        return
    prefix, namespace, resource, name = match.groups()
    collection = f"{prefix}namespaces/{namespace}/{resource}" if namespace else prefix + resource
    reads_collection = name is None and block.method in ("GET", "WATCH", "DELETE")
    names = LISTED.get(resource, ()) if reads_collection else (name,) if name else ()
    if block.method == "PUT" and "create on update" in block.title:
        names = ()
    for known in names:
        tree = object_for(resource, known)
        if tree is not None:
            await server.raw("POST", f"{collection}?{MANAGER}", tree)
            if "status" in tree:
                await server.raw(
                    "PATCH",
                    f"{collection}/{known}/status?{MANAGER}",
                    {"status": tree["status"]},
                    content_type="application/merge-patch+json",
                )
    for other in others:
        is_maker = other.method == "POST" and other.path == collection and other is not block
        if is_maker and name and f'"name": "{name}"' in other.body:
            await _send(server, other, other.body)


async def _send(server: Server, block: Block, body: str) -> Any:
    headers = {"user-agent": "python-requests/2", **block.headers}
    if block.content_type:
        headers["content-type"] = block.content_type
    path = block.path
    if block.method == "TABLE":
        collection, tree = table_object(block)
        path = f"{collection}/{tree['metadata']['name']}"
        headers["accept"] = TABLE
    return await server.client.request(
        {"WATCH": "GET", "TABLE": "GET"}.get(block.method, block.method),
        path,
        params=block.query,
        content=body or None,
        headers=headers,
    )


def is_cut(block: Block) -> bool:
    """True when the file holds the beginning of the body only."""
    return len(block.body) >= BODY_CHARACTERS_MAX


def _body(answer: Any) -> str:
    """The status line and the body, as the blocks write them."""
    warnings = ", ".join(answer.headers.get_list("warning"))
    head = f"{answer.status_code} {answer.headers.get('content-type', '')} W={warnings}"
    return f"{head}\n{_text(answer)}"


def _text(answer: Any) -> str:
    try:
        tree = _masked_tree(answer.json())
    except ValueError:
        return str(answer.text)
    text = json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False)
    return re.sub(r'(?m)^( *"(?:[^"\n\\]|\\.)*"): "', r'\1:"', text)


def _stream(answer: Any) -> str:
    """The events of a watch, a line each; an error as its body."""
    if answer.status_code != 200:
        return f"{answer.status_code}\n{_text(answer)}"
    lines = []
    for raw in answer.text.splitlines():
        event = json.loads(raw)
        tree = event["object"]
        metadata = tree.get("metadata", {})
        if event["type"] == "ERROR":
            lines.append(json.dumps(tree))
        elif event["type"] == "BOOKMARK":
            annotations = json.dumps(metadata.get("annotations"))
            lines.append(f"BOOKMARK {tree['kind']} {sorted(tree)} {annotations}")
        else:
            name = f"{metadata.get('namespace')}/{metadata.get('name')}"
            labels = json.dumps(metadata.get("labels"))
            lines.append(f"{event['type']} {tree['kind']} {tree['apiVersion']} {name} {labels}")
    return "\n".join(lines)


def _table(answer: Any) -> str:
    """The columns of a table, and its cells."""
    if answer.status_code != 200:
        shown = json.dumps(answer.json(), indent=2)[:TABLE_ERROR_CHARACTERS]
        return f"{answer.status_code} {shown}"
    table = answer.json()
    columns = [
        [column["name"], column["type"], column["format"], column["priority"]]
        for column in table["columnDefinitions"]
    ]
    rows = [
        ["AGE" if _AGE.fullmatch(str(cell)) else cell for cell in row["cells"]]
        for row in table["rows"]
    ]
    return f"{json.dumps(columns)}\n{json.dumps(rows)}"


def _masked_tree(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked_tree(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_masked_tree(item) for item in value]
    if isinstance(value, str) and key == "resourceVersion" and value:
        return "<rv>"
    if isinstance(value, str) and key == "continue" and value:
        return "<c>"
    return value

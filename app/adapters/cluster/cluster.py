"""A real cluster behind the port `ClusterSource`: discovery, lists by pages, watches.

Discovery decides the kind of an object, not the object itself. An object that cannot be read or
folded becomes an item with the problem: one object does not end a recording.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from app.adapters.cluster import discovery
from app.adapters.cluster.credentials import open_credentials
from app.adapters.cluster.discovery import KindChoice
from app.adapters.cluster.requests import NAMES_ONLY, RequestBounds, Requests, refusal
from app.adapters.history import times
from app.adapters.history.joining import normalising
from app.adapters.history.reading import Notes, ReadOptions, object_record
from app.domain.errors import ClusterUnreachable, Forbidden, InputError, NotFound
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import (
    ClusterIdentity,
    ListPage,
    ObjectVersion,
    ServedKind,
    WatchItem,
)
from app.domain.log.records import LIST, WATCH, Op
from app.domain.objects.rules import Rules
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import Clock

IDENTIFYING_NAMESPACE = "kube-system"
"""The uid of this namespace identifies a cluster: every cluster has it and never recreates it."""

_OPS = {"ADDED": Op.ADDED, "MODIFIED": Op.MODIFIED, "DELETED": Op.DELETED}


class ObjectReader:
    """Makes items from the objects of one cluster."""

    def __init__(self, source: str, rules: Rules) -> None:
        self._source = source
        self._options = ReadOptions(rules=rules, with_secrets=True)

    def listed(self, items: list[Any], kind: ServedKind, moment: Instant) -> Iterator[WatchItem]:
        """Yield a watch item for each item of a list; items of lists do not state their kind."""
        api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        for item in items:
            tree = item if isinstance(item, dict) else {}
            whole = {"apiVersion": api_version, "kind": kind.kind, **tree}
            yield self._item(whole, Op.BASELINE, kind, LIST, moment)

    def watched(self, line: Mapping[str, Any], kind: ServedKind, moment: Instant) -> WatchItem:
        """The item for a line of a watch, except a line of type ERROR."""
        tree = line["object"]
        if line["type"] == "BOOKMARK":
            return WatchItem(version=meta.resource_version(tree))
        return self._item(tree, _OPS[line["type"]], kind, WATCH, moment)

    def _item(
        self, tree: JsonObject, op: Op, kind: ServedKind, position: str, moment: Instant
    ) -> WatchItem:
        version = meta.resource_version(tree)
        namespace = meta.namespace(tree) if kind.is_namespaced else ""
        name = meta.name(tree)
        key = ObjectKey(kind.group, kind.resource, namespace, name)
        try:
            record = object_record(
                tree, op, source=self._source, position=position, order=(0, 0), observed_at=moment
            )
            record = msgspec.structs.replace(
                record, group=kind.group, resource=kind.resource, namespace=namespace
            )
            # Secrets and ConfigMaps are read only when they are included by name.
            normal = normalising.normalise(record, self._options, Notes(keep_going=True))
        except InputError as problem:
            return WatchItem(version=version, key=key, problem=str(problem))
        written = times.derive(tree) if position == WATCH else None
        return WatchItem(version=version, record=normal, key=key, written=written)


class ClusterReader:
    """Reads one cluster with one identity, in all namespaces or in one namespace."""

    def __init__(
        self,
        requests: Requests,
        *,
        clock: Clock,
        rules: Rules,
        choice: KindChoice,
        namespace: str = "",
        name: str = "cluster",
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._choice = choice
        self._namespace = namespace
        self._reader = ObjectReader(name, rules)
        self.name = name

    @property
    def clock_offset(self) -> int:
        """Microseconds by which the server is certainly ahead (negative: behind); else 0."""
        return self._requests.server_clock.offset

    @property
    def clock_spread(self) -> int:
        """Microseconds by which `clock_offset` may be wrong."""
        return self._requests.server_clock.spread

    async def identity(self) -> ClusterIdentity:
        """The identity of the cluster; the uid is empty when the namespace may not be read."""
        version = _tree(await self._requests.get("/version"), "/version")
        path = f"/api/v1/namespaces/{IDENTIFYING_NAMESPACE}"
        try:
            uid = meta.uid(_tree(await self._requests.get(path), path))
        except (Forbidden, NotFound):
            uid = NO_UID
        return ClusterIdentity(
            server=await self._requests.server(),
            release=json_tree.text(version, "gitVersion"),
            uid=uid,
            namespace=self._namespace,
        )

    async def kinds(self) -> tuple[list[ServedKind], list[str]]:
        """The chosen kinds that are served, and the names of those that are not."""
        return await discovery.discover(self._requests, self._choice)

    async def list_page(
        self, kind: ServedKind, *, limit: int, version: str = "", token: str = ""
    ) -> ListPage:
        """A page of the objects of a kind at `version` or now; `token` continues a list."""
        parameters = {"limit": str(limit), **self._selection(kind)}
        if token:
            parameters["continue"] = token
        elif version:
            parameters |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        path = self._path(kind)
        tree = _tree(await self._requests.get(path, **parameters), path)
        # A list without objects may have null for them.
        items = tree.get("items") or []
        if not (isinstance(items, list) and meta.resource_version(tree)):
            raise ClusterUnreachable(f"{path}: the answer is not a list of objects")
        return ListPage(
            items=tuple(self._reader.listed(items, kind, self._now())),
            version=meta.resource_version(tree),
            token=_next_page(tree),
        )

    async def versions_page(
        self, kind: ServedKind, *, limit: int, version: str, token: str = ""
    ) -> tuple[list[ObjectVersion], str]:
        """A page of the objects' names and versions at `version`; the token of the next page."""
        parameters = {"limit": str(limit), **self._selection(kind)}
        if token:
            parameters["continue"] = token
        else:
            parameters |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        path = self._path(kind)
        tree = _tree(await self._requests.get(path, accept=NAMES_ONLY, **parameters), path)
        versions = [
            ObjectVersion(
                namespace=meta.namespace(item) if kind.is_namespaced else "",
                name=meta.name(item),
                uid=meta.uid(item),
                version=meta.resource_version(item),
            )
            for item in json_tree.objects(tree, "items")
        ]
        return versions, _next_page(tree)

    @asynccontextmanager
    async def watch(
        self, kind: ServedKind, *, after: str, seconds: int
    ) -> AsyncIterator[AsyncIterator[WatchItem]]:
        """The changes of a kind after a version, until the server or `seconds` end the watch."""
        path = self._path(kind)
        parameters = {
            "watch": "true",
            "resourceVersion": after,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **self._selection(kind),
        }
        async with self._requests.stream(path, **parameters) as lines:
            yield self._items(lines, kind, path)

    async def _items(
        self, lines: AsyncIterator[bytes], kind: ServedKind, path: str
    ) -> AsyncIterator[WatchItem]:
        async for line in lines:
            tree = _tree(line, path)
            match tree:
                case {"type": "ERROR", "object": dict(status)}:
                    code = json_tree.integer(status, "code") or 0
                    raise refusal(code, msgspec.json.encode(status), path)
                case {"type": "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", "object": dict()}:
                    yield self._reader.watched(tree, kind, self._now())
                case _:
                    raise ClusterUnreachable(f"{path}: a line of the watch is not a watch event")

    def _path(self, kind: ServedKind) -> str:
        start = discovery.prefix(kind.group, kind.version)
        if self._namespace and kind.is_namespaced:
            return f"{start}/namespaces/{self._namespace}/{kind.resource}"
        return f"{start}/{kind.resource}"

    def _selection(self, kind: ServedKind) -> dict[str, str]:
        """The query parameters that restrict Namespaces to the one that is read."""
        if self._namespace and (kind.group, kind.resource) == api_resources.NAMESPACES:
            return {"fieldSelector": f"metadata.name={self._namespace}"}
        return {}

    def _now(self) -> Instant:
        """The present by the server's clock."""
        return Instant(self._clock.now() + self.clock_offset)


@asynccontextmanager
async def open_requests(
    kubeconfig: str, context: str, clock: Clock, bounds: RequestBounds
) -> AsyncIterator[Requests]:
    """Requests with the credentials of a kubeconfig; see `open_credentials`."""
    seconds = bounds.login_seconds
    async with open_credentials(kubeconfig, context, clock, seconds=seconds) as credentials:
        yield Requests(credentials, clock, bounds)


def _next_page(tree: dict[str, Any]) -> str:
    """The token of the next page of a list; empty on the last page."""
    return json_tree.text(tree, "metadata", "continue")


def _tree(body: bytes, path: str) -> dict[str, Any]:
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ClusterUnreachable(f"{path}: the answer is not JSON: {problem}") from problem
    if not isinstance(tree, dict):
        raise ClusterUnreachable(f"{path}: the answer is not an object")
    return tree

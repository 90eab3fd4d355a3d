"""A plain dictionary as the judge of lists, pages and watches.

It keeps every write in a list and computes each answer from all of them, so no answer affects the
next one. It shares no code with the server. `Walk` sends steps to one server, or to several over
one history, and compares every answer.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st

PATHS = {
    "configmaps": "/api/v1",
    "v1": "/apis/resource.k8s.io/v1",
    "v1beta1": "/apis/resource.k8s.io/v1beta1",
    "v1beta2": "/apis/resource.k8s.io/v1beta2",
}
"""Collections by a short word: one without versions, and claims in three versions."""

META = "v=v1;g=meta.k8s.io"
FORMS = {
    "object": "application/json",
    "table": f"application/json;as=Table;{META}",
    "partial": f"application/json;as=PartialObjectMetadataList;{META},application/json",
    "protobuf": "application/vnd.kubernetes.protobuf,application/json",
}
LABEL_SELECTORS: dict[str, Callable[[dict[str, str]], bool]] = {
    "": lambda labels: True,
    "a=1": lambda labels: labels.get("a") == "1",
    "a!=2": lambda labels: labels.get("a") != "2",
    "a in (1,2)": lambda labels: labels.get("a") in ("1", "2"),
    "!c": lambda labels: "c" not in labels,
    "b,a=1": lambda labels: "b" in labels and labels.get("a") == "1",
}
FIELD_SELECTORS: dict[str, Callable[[str, str], bool]] = {
    "": lambda namespace, name: True,
    "metadata.name!=x": lambda namespace, name: name != "x",
    "metadata.name!=y,metadata.name!=z": lambda namespace, name: name not in ("y", "z"),
    "metadata.namespace=default": lambda namespace, name: namespace == "default",
}
ONE_NAME = "metadata.name=y"
LAST = {"a": "1", "b": "1"}
"""Labels that every selector takes: the object that ends each watch has them."""

Key = tuple[str, str, str]
Tree = dict[str, Any]


@dataclass(frozen=True)
class Query:
    """The parameters of a list or watch.

    `version` is empty, "0", "any", "Exact" or "NotOlderThan"; the last three name the revision
    that is `percent` of the way from the first to the newest one.
    """

    collection: str = "configmaps"
    namespace: str = ""
    form: str = "object"
    labels: str = ""
    fields: str = ""
    limit: int = 0
    version: str = ""
    percent: int = 100

    @property
    def resource(self) -> str:
        return "configmaps" if self.collection == "configmaps" else "resourceclaims"

    @property
    def path(self) -> str:
        scope = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{PATHS[self.collection]}{scope}/{self.resource}"

    def selects(self, key: Key, labels: dict[str, str]) -> bool:
        resource, namespace, name = key
        if resource != self.resource or (self.namespace and namespace != self.namespace):
            return False
        if self.fields == ONE_NAME:
            return name == "y" and LABEL_SELECTORS[self.labels](labels)
        return FIELD_SELECTORS[self.fields](namespace, name) and LABEL_SELECTORS[self.labels](
            labels
        )


@dataclass
class Write:
    """One revision: the object after it, or for a removal the object before it."""

    revision: int
    key: Key
    labels: dict[str, str]
    mark: str
    is_removal: bool


@dataclass
class Page:
    """A continue token of a server, and the place that it stands for."""

    token: str
    revision: int
    after: tuple[str, str]
    query: Query


@dataclass
class Dictionary:
    """All writes after the revision `first`, and each answer computed from them."""

    head: int
    first: int = field(init=False)
    writes: list[Write] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = self.head

    def state(self, query: Query, revision: int) -> list[Write]:
        """The last write of each selected object that exists at a revision, sorted."""
        last: dict[Key, Write] = {}
        for write in self.writes:
            if write.revision <= revision:
                last[write.key] = write
        found = [write for write in last.values() if not write.is_removal]
        found = [write for write in found if query.selects(write.key, write.labels)]
        return sorted(found, key=lambda write: write.key)

    def changes(self, query: Query, after: int) -> list[tuple[str, str, str, int]]:
        """The (type, namespace, name, revision) of each event of a watch from a revision."""
        shown = {write.key for write in self.state(query, after)}
        told = []
        for write in self.writes:
            if write.revision <= after:
                continue
            _, namespace, name = write.key
            is_in = query.selects(write.key, write.labels) and not write.is_removal
            was_in = write.key in shown
            if is_in:
                shown.add(write.key)
            shown -= set() if is_in else {write.key}
            if is_in or was_in:
                word = ("MODIFIED" if was_in else "ADDED") if is_in else "DELETED"
                told.append((word, namespace, name, write.revision))
        return told


class Walk:
    """Sends steps to servers and compares each answer with that of the dictionary.

    A server is (client, open_watch): an `httpx.AsyncClient`, and a function that opens a watch,
    which has a method `line`.
    """

    def __init__(self, servers: list[Any], model: Dictionary) -> None:
        self.servers = servers
        self.model = model
        self.pages: list[Page] = []
        self._watches: list[tuple[Any, Query, int, bool]] = []
        self._stack = AsyncExitStack()
        self.count = 0

    async def take(self, step: tuple[Any, ...], at: int) -> None:
        """Takes one step on one of the servers."""
        server = self.servers[at % len(self.servers)]
        await self._catch_up(server)
        match step:
            case ("write", resource, namespace, name, labels):
                await self._write(server, (resource, namespace, name), labels)
            case ("remove", resource, namespace, name):
                await self._remove(server, (resource, namespace, name))
            case ("list", query):
                await self._list(server, query)
            case ("next", which, change):
                await self._next(server, which, change)
            case ("watch", query, is_initial):
                await self._watch(server, query, is_initial)

    async def end(self) -> None:
        """Writes a last object of each kind, and compares the events of all watches."""
        for resource in ("configmaps", "resourceclaims"):
            for namespace in ("kube-system", "default"):
                await self._write(self.servers[0], (resource, namespace, "zz"), LAST)
        try:
            for watch, query, after, is_initial in self._watches:
                await self._check_watch(watch, query, after, is_initial)
        finally:
            self._watches = []
            await self._stack.aclose()

    async def _catch_up(self, server: Any) -> None:
        """Waits until the server has seen all writes; another server's writes arrive later."""
        if len(self.servers) > 1:
            version = {"resourceVersion": self.model.head, "resourceVersionMatch": "NotOlderThan"}
            answer = await server[0].get("/api/v1/namespaces", params={**version, "limit": 1})
            assert answer.status_code == 200, answer.text

    async def _write(self, server: Any, key: Key, labels: dict[str, str]) -> None:
        resource, namespace, name = key
        self.count += 1
        mark = str(self.count)
        metadata = {"name": name, "labels": labels, "annotations": {"mark": mark}}
        tree: Tree = {"metadata": {**metadata, "namespace": namespace}}
        if resource == "configmaps":
            tree |= {"apiVersion": "v1", "kind": "ConfigMap"}
            path = Query(namespace=namespace).path
        else:
            exactly = {"deviceClassName": "gpu.example.com"}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            tree |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}
            path = Query(collection="v1", namespace=namespace).path
        exists = any(write.key == key for write in self._now(resource))
        if exists:
            answer = await server[0].put(f"{path}/{name}", json=tree)
        else:
            answer = await server[0].post(path, json=tree)
        assert answer.status_code in (200, 201), answer.text
        self._learn(answer.json(), key, labels, mark, is_removal=False)

    async def _remove(self, server: Any, key: Key) -> None:
        resource, namespace, name = key
        before = next((write for write in self._now(resource) if write.key == key), None)
        word = "configmaps" if resource == "configmaps" else "v1"
        path = Query(collection=word, namespace=namespace).path
        answer = await server[0].delete(f"{path}/{name}")
        assert answer.status_code == (404 if before is None else 200), answer.text
        if before is not None:
            tree = {"metadata": {"resourceVersion": str(self.model.head + 1)}}
            self._learn(tree, key, before.labels, before.mark, is_removal=True)

    def _now(self, resource: str) -> list[Write]:
        word = "configmaps" if resource == "configmaps" else "v1"
        return self.model.state(Query(collection=word), self.model.head)

    def _learn(
        self, tree: Tree, key: Key, labels: dict[str, str], mark: str, *, is_removal: bool
    ) -> None:
        revision = int(tree["metadata"]["resourceVersion"])
        assert revision == self.model.head + 1
        self.model.head = revision
        self.model.writes.append(Write(revision, key, labels, mark, is_removal))

    def _revision(self, query: Query) -> int:
        passed = self.model.head - self.model.first
        return self.model.first + passed * query.percent // 100

    async def _list(self, server: Any, query: Query) -> None:
        parameters: dict[str, Any] = {}
        shown = self.model.head
        if query.version == "0":
            parameters["resourceVersion"] = "0"
        elif query.version:
            parameters["resourceVersion"] = self._revision(query)
            if query.version != "any":
                parameters["resourceVersionMatch"] = query.version
            if query.version == "Exact" or (query.version == "any" and query.limit):
                shown = self._revision(query)
        await self._read(server, query, parameters, self.model.state(query, shown), shown)

    async def _next(self, server: Any, which: int, change: Query | None) -> None:
        if not self.pages:
            return
        page = self.pages[which % len(self.pages)]
        query = page.query
        if change is not None:
            # A token names only a place: it may be used with another selector, form and size.
            query = replace(change, collection=query.collection, namespace=query.namespace)
        state = self.model.state(query, page.revision)
        rest = [write for write in state if write.key[1:] > page.after]
        await self._read(server, query, {"continue": page.token}, rest, page.revision)

    async def _read(
        self, server: Any, query: Query, more: dict[str, Any], state: list[Write], shown: int
    ) -> None:
        """Compares one list with the expected one."""
        parameters = {**more, **_selectors(query)}
        if query.limit:
            parameters["limit"] = query.limit
        accept = {"accept": FORMS[query.form]}
        answer = await server[0].get(query.path, params=parameters, headers=accept)
        assert answer.status_code == 200, answer.text
        tree = answer.json()
        expected = state[: query.limit] if query.limit else state
        assert _shown(tree, query.form) == [_row(write) for write in expected], (query, parameters)
        metadata = tree["metadata"]
        assert metadata["resourceVersion"] == str(shown), (query, parameters)
        rest = len(state) - len(expected)
        assert ("continue" in metadata) is (rest > 0), (query, parameters)
        is_counted = not query.labels and not query.fields
        assert metadata.get("remainingItemCount", 0) == (rest if is_counted else 0), parameters
        if query.form == "object" and tree["items"] and query.resource == "resourceclaims":
            request = tree["items"][0]["spec"]["devices"]["requests"][0]
            assert ("exactly" in request) is (query.collection != "v1beta1")
        if rest:
            after = expected[-1].key
            self.pages.append(Page(metadata["continue"], shown, (after[1], after[2]), query))

    async def _watch(self, server: Any, query: Query, is_initial: bool) -> None:
        parameters: dict[str, Any] = {"watch": "true", **_selectors(query)}
        after = self._revision(query)
        if is_initial:
            parameters |= {
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
                "allowWatchBookmarks": "true",
            }
            after = self.model.head
        elif query.version == "0":
            parameters["resourceVersion"] = "0"
            after = self.model.head
        else:
            parameters["resourceVersion"] = after
        accept = {"accept": FORMS[query.form]}
        path = f"{query.path}?{urlencode(parameters)}"
        watch = await self._stack.enter_async_context(server[1](path, **accept))
        is_stated = is_initial or query.version == "0"
        self._watches.append((watch, query, after, is_stated))
        # The watch sends the existing objects before the next write.
        if is_stated:
            for write in self.model.state(query, after):
                _, namespace, name = write.key
                told = _told(await watch.line(), query.form)
                assert told == ("ADDED", namespace, name, write.revision), query
        if is_initial:
            line = await watch.line()
            assert line["type"] == "BOOKMARK", query

    async def _check_watch(self, watch: Any, query: Query, after: int, is_stated: bool) -> None:
        for expected in self.model.changes(query, after):
            assert _told(await watch.line(), query.form) == expected, (query, after, is_stated)


def _selectors(query: Query) -> dict[str, Any]:
    found = {}
    if query.labels:
        found["labelSelector"] = query.labels
    if query.fields:
        found["fieldSelector"] = query.fields
    return found


def _row(write: Write) -> tuple[str, str, str, str]:
    _, namespace, name = write.key
    return namespace, name, str(write.revision), write.mark


def _shown(tree: Tree, form: str) -> list[tuple[str, str, str, str]]:
    """The (namespace, name, revision, mark) of each item of a list."""
    items = [row["object"] for row in tree["rows"]] if form == "table" else tree["items"]
    found = []
    for metadata in (item["metadata"] for item in items):
        mark = metadata["annotations"]["mark"]
        place = metadata["namespace"], metadata["name"]
        found.append((*place, metadata["resourceVersion"], mark))
    return found


def _told(line: Tree, form: str) -> tuple[str, str, str, int]:
    """The (type, namespace, name, revision) of a line of a watch."""
    tree = line["object"]
    if form == "table":
        tree = tree["rows"][0]["object"]
    metadata = tree["metadata"]
    revision = int(metadata["resourceVersion"])
    return line["type"], metadata["namespace"], metadata["name"], revision


queries = st.builds(
    Query,
    collection=st.sampled_from(["configmaps", "configmaps", "configmaps", *PATHS]),
    namespace=st.sampled_from(["", "default", "default", "kube-system"]),
    form=st.sampled_from(["object", "object", "object", *FORMS]),
    labels=st.sampled_from(["", "", "", *LABEL_SELECTORS]),
    fields=st.sampled_from(["", "", "", ONE_NAME, *FIELD_SELECTORS]),
    limit=st.sampled_from([0, 0, 1, 2, 3, 5]),
    version=st.sampled_from(["", "", "", "0", "any", "Exact", "NotOlderThan"]),
    percent=st.integers(20, 100),
)
watch_queries = queries.filter(
    lambda query: (
        query.fields not in (ONE_NAME, "metadata.namespace=default") and query.form != "partial"
    )
)
"""A watch ends with an object that it must see."""

_places = (
    st.sampled_from(["configmaps", "configmaps", "configmaps", "resourceclaims"]),
    st.sampled_from(["default", "default", "kube-system"]),
    st.sampled_from("uvwxyz"),
)
_labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)
_writes = st.tuples(st.just("write"), *_places, _labels)
_tokens = st.integers(0, 7)


def _steps(pool: list[Query]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A step. Most lists repeat an earlier query: unchanged, as a whole, or by pages."""
    again = st.builds(replace, st.sampled_from(pool), limit=st.sampled_from([0, 1, 2]))
    return st.one_of(
        st.tuples(st.just("list"), again),
        st.tuples(st.just("list"), st.one_of(again, queries)),
        st.tuples(st.just("next"), _tokens, st.one_of(st.none(), again, queries)),
        st.tuples(st.just("next"), st.just(-1), st.none()),
        st.tuples(st.just("next"), st.just(-1), st.none()),
        st.tuples(st.just("watch"), watch_queries, st.booleans()),
        st.one_of(_writes, _writes, st.tuples(st.just("remove"), *_places)),
    )


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Some objects, then any interleaving of steps, each with the number of its server."""
    objects = draw(st.lists(_writes, min_size=6, max_size=20, unique_by=lambda step: step[1:4]))
    pool = draw(st.lists(queries, min_size=1, max_size=3))
    steps = st.tuples(_steps(pool), st.integers(0, 1))
    return objects, draw(st.lists(steps, min_size=10, max_size=40))

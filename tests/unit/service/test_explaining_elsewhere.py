"""An object that one history lacks and another one has."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog
from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import Question
from app.bootstrap import stores
from app.bootstrap.answers import served
from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.stores import Store
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import InputError, NotFound
from app.domain.log import Actor, Event, Head, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import ImportObject
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service import importing
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments, Sight
from app.service.importing import ImportOptions
from app.settings import Settings
from tests.cluster import Cluster
from tests.unit.service.test_explaining import views_up_to
from tests.unit.service.test_replaying import history_of

PLACES = [f"team-{number:03}" for number in range(60)]
PORT_CALLS = ("head", "keys", "read", "read_object")


async def test_object_of_another_history_is_said_to_be_there() -> None:
    store = stores.memory_store()
    here, there = Cluster(), Cluster()
    here.node("n1")
    there.node("n2")
    for name, cluster in (("here", here), ("there", there)):
        info = await store.log.create_history(name, seed=1, settings={}, created=Instant(0))
        await store.log.append(info.id, expected=Head(), events=cluster.line.events)
    for kind in ("node", "no", "nodes"):
        with pytest.raises(NotFound, match="history there has it"):
            await why(store, "here", kind=kind, name="n2")
    assert (await why(store, "there", kind="node", name="n2"))["subject"] == "node n2"
    with pytest.raises(NotFound, match=r"not found up to revision [0-9]+; do you mean n1\?$"):
        await why(store, "here", kind="node", name="n3")


KEPT = [
    (ObjectKey("flowcontrol.example.com", "flowschemas", "", "probes"), "FlowSchema"),
    (ObjectKey("example.com", "widgets", "lab", "w"), "Widget"),
]
"""Objects of kinds that redra only keeps, and the kinds."""


@pytest.mark.parametrize(("kind", "name", "named"), [
    ("flowschemas", "probes", 0), ("FlowSchema", "probes", 0), ("flowschema", "probes", 0),
    ("flowschemas.flowcontrol.example.com", "probes", 0),
    ("widgets", "w", 1), ("widget.example.com", "w", 1),
])  # fmt: skip
async def test_object_of_a_kind_that_is_only_kept_is_explained(kind, name, named) -> None:
    store = await keeping()
    answer = await why(store, "here", kind=kind, name=name, namespace="lab")
    key = KEPT[named][0]
    assert answer["subject"] == f"{key.resource} {f'lab/{name}' if named else name}"
    assert "created" in str(answer["reasons"])


async def test_kind_of_which_nothing_is_kept_is_no_kind() -> None:
    store = await keeping()
    for kind in ("flowschemas.example.com", "widgets.flowcontrol.example.com", "gadgets", "w"):
        with pytest.raises(InputError, match=f"there is no kind '{kind}'"):
            await why(store, "here", kind=kind, name="w", namespace="lab")
    with pytest.raises(NotFound, match='widgets "v" not found in namespace lab'):
        await why(store, "here", kind="widgets", name="v", namespace="lab")
    with pytest.raises(NotFound, match="there is one in namespace lab"):
        await why(store, "here", kind="widgets", name="w", namespace="other")


@pytest.mark.parametrize("kind", ["widgets", "Widget", "widgets.example.com", "widget"])
async def test_kind_that_only_another_moment_has_is_known(tmp_path: Path, kind: str) -> None:
    """Widget w is created as the second record, and deleted as the fourth."""
    store = stores.memory_store()
    path = tmp_path / "watch.jsonl"
    path.write_text("".join(map(record, (
        ("ADDED", "v1", "Namespace", "lab"), ("ADDED", "example.com/v1", "Widget", "w"),
        ("ADDED", "v1", "Namespace", "other"), ("DELETED", "example.com/v1", "Widget", "w"),
        ("ADDED", "v1", "Namespace", "third"),
    ), range(5))))  # fmt: skip
    with open_history([path], ReadOptions()) as source:
        await importing.import_records(store.log, source, name="here", options=ImportOptions())
    asked = {"kind": kind, "namespace": "lab"}
    info = await store.log.find_history("here")
    assert info is not None
    events = await store.log.read(info.id, after=Revision(0), limit=20)
    made, ended = (event.revision for event in events if event.key.resource == "widgets")
    with pytest.raises(NotFound, match=r'widgets "w" not found .*; one was created later'):
        await why(store, "here", at=str(made - 1), name="w", **asked)
    assert (await why(store, "here", at=str(made), name="w", **asked))["outcome"] == "Present"
    assert (await why(store, "here", at=str(ended), name="w", **asked))["text"] == "is gone"
    for part in ("why", "object"):
        query = ServedQuery(
            history="here", part=part, parameters={**asked, "name": "w"}, is_page=True
        )
        assert b"widgets" in await served.ask(store, Settings(), query), part
    for moment in (str(made - 1), str(made), ""):
        with pytest.raises(NotFound, match='widgets "v" not found'):
            await why(store, "here", at=moment, name="v", **asked)
    with pytest.raises(InputError, match="there is no kind 'widgetz'"):
        await why(store, "here", kind="widgetz", name="w")


def record(change: tuple[str, str, str, str], number: int) -> str:
    """A line of a recorded watch."""
    type, version, kind, name = change
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(number + 5),
                "creationTimestamp": "2026-01-01T00:00:00Z"}  # fmt: skip
    if kind == "Widget":
        metadata["namespace"] = "lab"
    tree = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return msgspec.json.encode({"type": type, "object": tree}).decode() + "\n"


async def keeping() -> Store:
    """A store with a history of the kept objects."""
    store, cluster = stores.memory_store(), Cluster()
    for number, (key, kind) in enumerate(KEPT):
        uid = Uid(f"0000000a-0000-4000-8000-00000000000{number}")
        metadata = {"name": key.name, "uid": uid, **({"namespace": "lab"} if key.namespace else {})}
        tree = {"apiVersion": f"{key.group}/v1", "kind": kind, "metadata": metadata}
        command = ImportObject(operation="ADDED", key=key, uid=uid, tree=tree)
        cluster.line.submit(command, actor=Actor(user="alice"))
    info = await store.log.create_history("here", seed=1, settings={}, created=Instant(0))
    await store.log.append(info.id, expected=Head(), events=cluster.line.events)
    return store


async def test_node_that_is_missing_is_not_taken_for_its_pod() -> None:
    store = stores.memory_store()
    here, there = Cluster(), Cluster()
    for cluster in (here, there):
        cluster.node("n1")
        cluster.pod("web")
    for name, cluster in (("here", here), ("there", there)):
        info = await store.log.create_history(name, seed=1, settings={}, created=Instant(0))
        await store.log.append(info.id, expected=Head(), events=cluster.line.events)
    with pytest.raises(NotFound) as refusal:
        await why(store, "here", kind="pod", name="web", node="nope")
    assert "nope" in refusal.value.message
    assert "has it" not in refusal.value.message


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each method of the log is called."""
    counts: Counter[str] = Counter()

    def counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return await method(*given, **named)

        return call

    for name in PORT_CALLS:
        monkeypatch.setattr(MemoryLog, name, counted(name, getattr(MemoryLog, name)))
    return counts


def everywhere(*names: str, gone: bool = False) -> Cluster:
    """Pods of these names in each of PLACES."""
    cluster = Cluster(namespaces=PLACES)
    for place in PLACES:
        for name in names:
            cluster.pod(name, namespace=place)
            if gone:
                cluster.delete("pods", name, place, grace_seconds=0)
    return cluster


async def refused(events: Sequence[Event], name: str, sight: Sight, **bounds: int) -> str:
    """What the refusal of a question about a pod of namespace default says."""
    log, info = await history_of(events)
    views = views_up_to(events, len(events))

    async def views_at(_: int) -> Any:
        return views

    explainer = Explainer(
        log,
        info,
        views,
        CelCompiler(detailed_errors=True),
        Profile(),
        past=PastMoments(views_at, views_at),
        bounds=ExplainBounds(**bounds),
        sight=sight,
    )
    with pytest.raises(NotFound) as refusal:
        await explainer.why(Question(kind="pod", namespace="default", name=name))
    return refusal.value.message


async def test_namespaces_that_the_reader_may_not_see_cost_nothing(calls: Counter[str]) -> None:
    events = everywhere("web", gone=True).line.events
    sight = Sight(sees_key=lambda key: key.namespace == PLACES[-1])
    said = await refused(events, "web", sight)
    assert f"; there was one in namespace {PLACES[-1]} until revision " in said
    seen = calls["read_object"]
    calls.clear()
    nobody = Sight(sees_key=lambda _: False)
    assert PLACES[0][:4] not in await refused(events, "web", nobody)
    assert calls["read_object"] == seen - 1
    calls.clear()
    blind = Sight(sees=lambda _: False)
    assert PLACES[0][:4] not in await refused(events, "web", blind, places_max=7)
    # Seven places, and the one whose equal name looks alike.
    assert calls["read_object"] == seen - 1 + 7 + 1
    assert calls["keys"] == 2


async def test_only_what_the_reader_may_see_is_offered() -> None:
    events = everywhere("web").line.events
    mine = Sight(sees_key=lambda key: key.namespace in ("default", PLACES[7]))
    assert (await refused(events, "web", mine)).endswith(f"; there is one in namespace {PLACES[7]}")
    hidden = Sight(sees_key=lambda key: key.namespace == "default")
    assert (await refused(events, "web", hidden)).endswith(f"revision {len(events)}")
    assert (await refused(events, "wep", hidden)).endswith(f"revision {len(events)}")
    said = await refused(events, "wep", mine)
    assert said.endswith(f"; do you mean web in namespace {PLACES[7]}?")


async def test_names_that_are_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    keys = MemoryLog.keys

    async def counted(log: MemoryLog, *given: Any, limit: int, **named: Any) -> list[ObjectKey]:
        limits.append(limit)
        return await keys(log, *given, limit=limit, **named)

    monkeypatch.setattr(MemoryLog, "keys", counted)
    said = await refused(everywhere("web").line.events, "wep", Sight(), names_max=11)
    assert said.endswith(f"; do you mean web in namespace {PLACES[10]}?")
    assert limits == [11, 11]


async def test_very_many_histories_and_namespaces_make_a_short_answer(calls: Counter[str]) -> None:
    store = stores.memory_store()
    await begin(store, "empty", Cluster())
    await begin(store, "wide", everywhere("web"))
    with pytest.raises(NotFound) as refusal:
        await why(store, "empty", kind="pod", name="web")
    first = ", ".join(PLACES[:3])
    wide = f"wide (in namespaces {first} and at least 17 more)"
    assert refusal.value.message.endswith(f"; history {wide} has it")
    for number in range(30):
        await begin(store, f"with-{number:02}", with_pod("web"))
    calls.clear()
    with pytest.raises(NotFound) as refusal:
        await why(store, "empty", kind="pod", name="web")
    named = (
        f"wide (in namespaces {first} and at least 17 more), with-00, with-01 and at least 1 more"
    )
    assert refusal.value.message.endswith(f"; histories {named} have it")
    assert calls["keys"] <= 3
    for number in range(60):
        await begin(store, f"a-{number:02}", Cluster())
    with pytest.raises(NotFound) as refusal:
        await why(store, "empty", kind="pod", name="web")
    assert "has it" not in refusal.value.message
    assert calls["keys"] <= 3 + 2 + 50


def with_pod(name: str) -> Cluster:
    """A pod in namespace default."""
    cluster = Cluster()
    cluster.pod(name)
    return cluster


async def begin(store: Store, name: str, cluster: Cluster) -> None:
    """A history of what happened in a cluster."""
    info = await store.log.create_history(name, seed=1, settings={}, created=Instant(0))
    await store.log.append(info.id, expected=Head(), events=cluster.line.events)


async def why(store: Store, history: str, at: str = "", **parameters: str) -> JsonObject:
    """The answer of redra's own API."""
    query = ServedQuery(history=history, part="why", at=at, parameters=parameters)
    tree: JsonObject = msgspec.json.decode(await served.ask(store, Settings(), query))
    return tree

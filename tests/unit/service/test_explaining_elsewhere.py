"""An object that one history lacks and another one has."""

import msgspec
import pytest

from app.bootstrap import stores
from app.bootstrap.answers import served
from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.stores import Store
from app.domain.errors import NotFound
from app.domain.log import Head
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.settings import Settings
from tests.cluster import Cluster


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


async def why(store: Store, history: str, **parameters: str) -> JsonObject:
    """The answer of redra's own API."""
    query = ServedQuery(history=history, part="why", parameters=parameters)
    tree: JsonObject = msgspec.json.decode(await served.ask(store, Settings(), query))
    return tree

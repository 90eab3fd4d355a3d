"""An object that one history lacks and another one has."""

import pytest

from app.analysis.explain.questions import Question
from app.bootstrap import stores
from app.bootstrap.answers import explanations
from app.domain.errors import NotFound
from app.domain.log import Head
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
        question = Question(kind=kind, namespace="default", name="n2")
        there_is = pytest.RaisesExc(NotFound, match="history there has it")
        with pytest.RaisesGroup(there_is, flatten_subgroups=True):
            await explanations.why(store, Settings(), "here", "", question)
    found = await explanations.why(store, Settings(), "there", "", question)
    assert found.subject == "node n2"
    question = Question(kind="node", namespace="default", name="n3")
    nowhere = pytest.RaisesExc(NotFound, match="not found up to revision [0-9]+$")
    with pytest.RaisesGroup(nowhere, flatten_subgroups=True):
        await explanations.why(store, Settings(), "here", "", question)

"""Answers that commands get without the application: the same, and without its code."""

import json
import logging
import subprocess
import sys
from dataclasses import replace

import pytest

from app.analysis.views import LiveViews
from app.bootstrap import histories
from app.bootstrap.answers import direct, served
from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.stores import memory_store
from app.domain.errors import NotFound, Rejected
from app.domain.log import Head
from app.settings import Settings
from tests import draws
from tests.web import invented, later_incidents
from tests.web.test_incident_stories import played

HEAVY = ("app.api", "app.web", "app.analysis.scan", "app.analysis.replay", "app.adapters.history")
"""Code that no explanation needs."""


async def store_of(make):
    """A store in memory with an incident."""
    store = memory_store()
    incident = make(invented.Names(1)).incident()
    info = await store.log.create_history(
        "default", seed=0, settings=incident.cluster.settings(), created=0, hash=Head().hash
    )
    await store.log.append(info.id, expected=Head(), events=played(incident))
    return store


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "pod", "name": "next", "namespace": "lab", "help": "true"},
        {"kind": "pod", "name": "lab/next", "namespace": "", "node": "n"},
        {"kind": "claim", "name": "want", "namespace": "lab"},
        {"kind": "deviceclass", "name": "c", "namespace": "default"},
        {"kind": "node", "name": "n", "namespace": "default"},
    ],
)
async def test_answer_is_that_of_the_application(parameters):
    store = await store_of(later_incidents.finalizer_keeps_a_claim_with_its_device)
    query = ServedQuery(history="default", part="why", parameters=parameters)
    mine = json.loads(await direct.ask(store, Settings(), query))
    assert mine == json.loads(await served.ask(store, Settings(), query))
    assert mine["reasons"]["children"]


async def test_present_needs_no_view_of_the_past(monkeypatch):
    """Such a view would read each key that ever existed; more objects than one may have exist."""
    store = await store_of(later_incidents.finalizer_keeps_a_claim_with_its_device)
    query = ServedQuery(
        history="default", part="why", parameters={"kind": "node", "name": "n", "namespace": "lab"}
    )
    expected = await served.ask(store, Settings(), query)

    async def refused(*_):
        pytest.fail("the application is asked")

    monkeypatch.setattr(served, "ask", refused)
    answer = await direct.ask(store, Settings(past_objects_max=1), query)
    assert json.loads(answer) == json.loads(expected)


async def test_devices_are_read_without_the_other_objects_of_a_moment():
    store = await store_of(later_incidents.finalizer_keeps_a_claim_with_its_device)
    info = await store.log.find_history("default")
    end = (await store.log.head(info.id)).revision
    kinds = ("deviceclasses", "devicetaintrules", "resourceslicepatches", "resourceslices")
    there = await store.log.objects_at(info.id, end, limit=1_000)
    published = [event.object for event in there if event.key.resource == "resourceslices"]
    few = Settings(past_objects_max=sum(event.key.resource in kinds for event in there))
    assert few.past_objects_max < len(there)
    inventory = await histories.inventory_at(store, few, "default", "")
    assert published
    assert [(one.name, [each.id[2] for each in one.devices]) for one in inventory.slices()] == [
        (tree["metadata"]["name"], [each["name"] for each in tree["spec"]["devices"]])
        for tree in published
    ]


async def test_object_that_is_not_there_is_looked_for_elsewhere():
    store = await store_of(later_incidents.finalizer_keeps_a_claim_with_its_device)
    query = ServedQuery(history="default", part="why", parameters={"kind": "pod", "name": "next"})
    with pytest.raises(NotFound) as mine:
        await direct.ask(store, Settings(), query)
    with pytest.raises(NotFound) as theirs:
        await served.ask(store, Settings(), replace(query))
    assert str(mine.value) == str(theirs.value)
    assert "there is one in namespace lab" in str(mine.value)


async def test_broken_history_is_refused_as_by_the_application(monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL, logger="redra")
    store = await store_of(later_incidents.finalizer_keeps_a_claim_with_its_device)

    def broken(self, event):
        raise TypeError("this cannot be folded")

    monkeypatch.setattr(LiveViews, "fold", broken)
    query = ServedQuery(history="default", part="why", parameters={"kind": "pod", "name": "next"})
    with pytest.raises(Rejected, match="'default' is broken: TypeError: this cannot be folded"):
        await direct.ask(store, Settings(), query)


@draws.in_turn("ways")
def test_explanations_import_nothing_of_the_application():
    text = "import app.bootstrap.answers.direct, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    modules = run.stdout.split()
    assert "app.service.explaining.explainer" in modules
    assert [name for name in modules if name.startswith(HEAVY)] == []

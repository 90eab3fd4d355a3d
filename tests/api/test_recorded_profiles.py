"""Pods of a further profile of a recorded scheduler are its own, those of another program are not.

The same cluster is recorded three times: with the default name, with that of a profile, whose
answers are the same, and with another program that bound its pods.
"""

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.domain.log import Actor, Head, chain
from app.domain.log.records import IMPORTER_USER
from tests.api.questions import BELOW
from tests.api.serving import serving
from tests.web.test_incident_stories import played
from tests.web.test_same_facts import world

SCHEDULER = "system:kube-scheduler"
OTHER = "system:serviceaccount:kube-system:packer"
THIRD = "kind=pods&namespace=lab&name=third&help=true"
QUESTIONS = {
    "why": ("GET", f"why?{THIRD}", None),
    "findings": ("GET", "findings", None),
    "blast": ("POST", "blast", {"delete": ["pods/lab/first"]}),
    "fit": ("GET", "fit", None),
}


async def recorded(name="", user="", *, is_recorded=True):
    """The cluster as a recording; its pods name this scheduler, and this user wrote for it."""
    incident = world()
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    settings = incident.cluster.settings() | ({"recorded": True} if is_recorded else {})
    info = await log.create_history("default", seed=0, settings=settings, created=0)
    events, previous = [], Head().hash
    for event in played(incident):
        body = event.body.replace(b"default-scheduler", name.encode()) if name else event.body
        actor = event.stamp.actor
        if user and actor.user == SCHEDULER:
            actor = Actor(user=user)
        stamp = msgspec.structs.replace(event.stamp, actor=actor)
        named = msgspec.structs.replace(event, stamp=stamp)
        events.append(chain.relinked(named, body, previous))
        previous = events[-1].hash
    await log.append(info.id, expected=Head(), events=events)
    return store


async def answers(store, *names):
    """The answers to questions, without what names bytes of the log."""
    async with serving(store=store) as server:
        told = []
        for name in names or QUESTIONS:
            method, path, body = QUESTIONS[name]
            answer = await server.raw(
                method, f"{BELOW}/{path}", body, content_type="application/json"
            )
            assert answer.status_code == 200, answer.text
            told.append(answer.text)
    return told


@pytest.mark.parametrize("user", ["", IMPORTER_USER])
async def test_answers_about_a_further_profile_are_those_about_the_default_one(user):
    default = await answers(await recorded(user=user))
    profile = await answers(await recorded("packing", user))
    assert [text.replace("packing", "default-scheduler") for text in profile] == default
    assert "does not run here" not in default[0]


@pytest.mark.parametrize(
    ("user", "is_recorded"), [(OTHER, True), ("", False)], ids=["other-program", "not-recorded"]
)
async def test_pods_that_another_program_serves_are_left_to_it(user, is_recorded):
    why, blast = await answers(
        await recorded("packing", user, is_recorded=is_recorded), "why", "blast"
    )
    assert "it is left to the scheduler packing, which does not run here" in why
    assert msgspec.json.decode(blast)["waiting"] == []

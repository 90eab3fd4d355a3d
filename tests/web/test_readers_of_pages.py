"""Pages and JSON are the same to a reader whatever stands in objects that the reader may not see.

Each question of `/redra/v1` and `/ui/` about a history is sent by a user with few rights: once to
the history as it was played, once to one in which each object that the user may not read was
replaced by an empty one, written by nobody. What differs was told to a reader without the right to
it. `test_readers_of_reasons` asks the same of answers alone, of readers of all kinds they rest on.
"""

import re

import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.api.access.authorization import Authorization
from app.api.access.readers import WORKED_OUT_FROM
from app.api.identity.authentication import Credentials
from app.bootstrap.gallery import incident_files, playing
from app.domain.log import Actor, Draft, EventType, Head, ObjectKey, Stamp, chain
from app.domain.objects.access.rules import AccessRule, Binding
from app.domain.values import api_resources
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.api import questions
from tests.api.questions import BELOW, World, no_worker
from tests.api.serving import serving
from tests.virtual_clock import VirtualClock
from tests.web import (
    apart_incidents,
    asked_incidents,
    counted_incidents,
    deeper_incidents,
    field_incidents,
    invented,
    misplaced_incidents,
    more_incidents,
    night_incidents,
    node_incidents,
    overlooked_incidents,
    quiet_incidents,
    refused_incidents,
    reported_incidents,
    rollout_incidents,
    thread_incidents,
    walked_incidents,
)
from tests.web.later_incidents import LATER
from tests.web.reading import read, ready
from tests.web.test_incident_stories import played

KNOWN = Credentials(
    tokens={
        "reader": Actor(user="reader", groups=("system:authenticated",)),
        "root": Actor(user="root", groups=("system:masters",)),
    },
    anonymous=None,
)
READER, ROOT = ({"authorization": f"Bearer {user}"} for user in ("reader", "root"))
PATHS = AccessRule(verbs=frozenset(("get", "post")), paths=("*",))

READERS = {
    "of-what-answers-rest-on": (WORKED_OUT_FROM, ""),
    "of-events-too": ((*WORKED_OUT_FROM, api_resources.EVENTS), ""),
    "of-one-namespace": ((api_resources.PODS, api_resources.RESOURCE_CLAIMS), "lab"),
}
"""The kinds that a reader may read, and the only namespace of that."""

OWN = {"origin": "http://redra"}
"""What a form of the pages is sent with."""

HASHES = re.compile('"(hash|signature)":"[^"]*"')
"""What covers the whole log, whoever may read it, tells nothing of it."""

COMPARED = re.compile("/(diff|compare|again|rehearsal)([?]|$)")
"""Comparisons are for who may read all kinds; their refusal names a kind that the history has."""

REFUSED_KIND = re.compile(
    r"(cannot list resource (?:&#34;|\\?\")?)([\w-]+)(.*?in API group (?:&#34;|\\?\")?)([\w.-]*)"
)

LATER_BY = 3_600 * SECOND


def sees(key, reader):
    kinds, namespace = READERS[reader]
    return key[:2] in kinds and namespace in ("", key.namespace)


def allowed(reader):
    """The policy that lets the user read what the reader may."""
    kinds, namespace = READERS[reader]
    rules = tuple(
        AccessRule(
            verbs=frozenset(("get", "list")),
            groups=frozenset((group,)),
            resources=frozenset((one,)),
        )
        for group, one in kinds
    )
    users = frozenset(("reader",))
    bindings = (
        Binding(users=users, rules=(PATHS,)),
        Binding(users=users, rules=rules, namespace=namespace),
    )
    return Authorization(is_open=False, policy=lambda history: bindings)


def hidden(info, events, reader):
    """The events, chained anew; of objects that the reader may not see only the times are left."""
    previous = chain.genesis_of(info)
    for event in events:
        draft = Draft(
            type=event.type, key=event.key, uid=event.uid, tree=event.object, stamp=event.stamp
        )
        if event.is_about_object and not sees(event.key, reader):
            name = f"x{event.revision}"
            meta = {"name": name, "namespace": "nowhere", "uid": name}
            draft = Draft(
                type=EventType.OBJECT_CREATED,
                key=ObjectKey("", "configmaps", "nowhere", name),
                uid=name,
                tree={"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta},
                stamp=Stamp(time=event.stamp.time, actor=Actor(user="nobody"), verb="create"),
            )
        sealed = chain.seal(draft, event.revision, previous)
        previous = sealed.hash
        yield sealed


async def stored(incident, events, hidden_from=""):
    """The history of an incident, without what is hidden from a reader, if one is given."""
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    info = await log.create_history(
        "default", seed=0, settings=incident.cluster.settings(), created=playing.START,
        hash=Head().hash,
    )  # fmt: skip
    if hidden_from:
        events = [*hidden(info, events, hidden_from)]
    await log.append(info.id, expected=Head(), events=events)
    return store


async def all_questions(server):
    """The questions about the objects of a history, with those that have a body."""
    await server.get(f"{BELOW}/findings", **ROOT)
    (runtime,) = server.histories.open_runtimes()
    views = [view["name"] for view in (await server.get(f"{BELOW}/views", **ROOT))["items"]]
    world = World(runtime, views)
    return [*questions.of_api(world), *questions.of_pages(world), *questions.of_forms(world)]


def without_kind(text):
    """A refusal without the kind that it names, unless it names all of them."""
    refused = REFUSED_KIND.search(text)
    return text if refused is None else REFUSED_KIND.sub("", text).replace(refused[2], "")


async def sent(server, one):
    """The answer that the reader gets."""
    if one.form is not None:
        return await server.client.post(one.url, data=one.form, headers=READER | OWN)
    if one.method == "POST":
        return await server.raw("POST", one.url, one.body, **READER)
    return await ready(lambda: server.raw("GET", one.url, **READER))


async def answers(incident, events, reader, asked=(), hidden_from="", part=""):
    """What the reader gets for the questions, by question; without `asked` for all of a part."""
    async with serving(
        store=await stored(incident, events, hidden_from),
        credentials=KNOWN,
        authorization=allowed(reader),
        worker=no_worker,
        clock=VirtualClock(Instant(events[-1].stamp.time + LATER_BY)),
    ) as server:
        given = {}
        for one in asked or await all_questions(server):
            if part not in one.url:
                continue
            answer = await sent(server, one)
            text = HASHES.sub("", answer.text)
            if COMPARED.search(one.url) and answer.status_code == 403:
                text = without_kind(text)
            given[one] = f"{answer.status_code}\n{text}"
        return given


ROWS = (
    *more_incidents.MORE, *invented.INVENTED, *LATER, *reported_incidents.REPORTED,
    *night_incidents.NIGHT, *quiet_incidents.QUIET, *asked_incidents.ASKED,
    *refused_incidents.REFUSED, *counted_incidents.COUNTED, *deeper_incidents.DEEPER,
    *field_incidents.FIELD, *node_incidents.NODES, *rollout_incidents.ROLLOUTS,
    *thread_incidents.THREADS, *walked_incidents.WALKED, *apart_incidents.APART,
    *misplaced_incidents.MISPLACED, *overlooked_incidents.OVERLOOKED, *overlooked_incidents.PLACED,
)  # fmt: skip
FIRST = "share_is_dropped_by_the_server"
"""The incident in which a page told a field of a template."""


def drawn(make):
    return {make.__name__: lambda: make(invented.Names(3)).incident()}


INCIDENTS = {name: make for one in ROWS for name, make in drawn(one).items()} | {
    name: lambda name=name: incident_files.read(name).incident for name in incident_files.names()
}


async def test_denied_page_leads_to_what_its_reader_may_read():
    incident = INCIDENTS[FIRST]()
    async with serving(
        store=await stored(incident, played(incident)),
        credentials=KNOWN,
        authorization=allowed("of-one-namespace"),
        worker=no_worker,
    ) as server:
        denied = await server.raw("GET", "/ui/h/default/", **READER)
        assert denied.status_code == 403
        (link, _) = read(denied.text).one("main").links
        answer = await ready(lambda: server.raw("GET", link, **READER))
        assert answer.status_code == 200
        rows = read(answer.text).one("tbody").all("tr")
        assert rows
        assert all(" lab/" in row.text for row in rows)
        nobody = await server.raw("GET", link, authorization="Bearer nothing")
        assert nobody.status_code == 401
        assert read(nobody.text).one("main").links == ["/ui/"]


CASES = [(name, reader) for name in INCIDENTS for reader in READERS]
FEW = (FIRST, "of-one-namespace")
"""The reader with the fewest answers, who takes the least time, and to whom all of it was told."""


@pytest.mark.parametrize(
    ("name", "reader"), [FEW, *(draws.repeated(*case) for case in CASES if case != FEW)]
)
async def test_pages_do_not_depend_on_what_their_reader_may_not_see(name, reader):
    incident = INCIDENTS[name]()
    events = played(incident)
    shown = await answers(incident, events, reader)
    assert any(text.startswith("200\n") for text in shown.values())
    without = await answers(incident, events, reader, [*shown], hidden_from=reader)
    told = [(str(one), text, without[one]) for one, text in shown.items() if text != without[one]]
    assert not told


async def test_effects_of_a_change_do_not_depend_on_what_their_reader_may_not_see():
    """Whether a claim is made again depends on a template, which this reader may not read."""
    reader = "of-what-answers-rest-on"
    incident = INCIDENTS[FIRST]()
    events = played(incident)
    shown = await answers(incident, events, reader, part="/blast")
    assert any(one.method == "POST" and "job-2 cannot start" in text for one, text in shown.items())
    without = await answers(incident, events, reader, [*shown], hidden_from=reader)
    assert not [(str(one), text) for one, text in shown.items() if text != without[one]]


@pytest.mark.parametrize("reader", READERS)
async def test_findings_tell_nothing_of_objects_that_their_reader_may_not_see(reader):
    """The quota allows less than is in use, and this reader may not read quotas."""
    incident = INCIDENTS["quota_was_lowered_under_services"]()
    events = played(incident)
    shown = await answers(incident, events, reader, part="/findings")
    assert shown
    without = await answers(incident, events, reader, [*shown], hidden_from=reader)
    assert not [(str(one), text) for one, text in shown.items() if text != without[one]]


@pytest.mark.parametrize("reader", READERS)
async def test_effects_of_a_quota_do_not_depend_on_what_their_reader_may_not_see(reader):
    """It is written in a namespace, which none of these readers may read."""
    incident = INCIDENTS["quota_was_lowered_under_services"]()
    events = played(incident)
    shown = await answers(incident, events, reader, part="/blast")
    assert any("ResourceQuota" in str(one) for one in shown)
    without = await answers(incident, events, reader, [*shown], hidden_from=reader)
    assert not [(str(one), text) for one, text in shown.items() if text != without[one]]

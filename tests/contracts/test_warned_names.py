"""Do the keys of Event objects that warn about a name include all that do?

The truth is read from the decoded bodies here. Where a body is plain, nothing else is among them.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

from app.domain.log import Draft, EventType, Head, ObjectKey, Revision
from app.domain.log.event import KeyFilter
from app.domain.values.json_tree import JsonObject
from tests.contracts.building import draft, sealed
from tests.contracts.stores import OpenStores
from tests.contracts.test_forks import forked, info_of

NAMES = ("web", "web-1", "we", "n1.example")

LONG = "n" * 253


def plain(name: str, field: str = "involvedObject", **more: Any) -> JsonObject:
    about = {"kind": "Pod", "name": name, "namespace": "a", "fieldPath": "spec.containers{name}"}
    return {"kind": "Event", field: about, "type": "Warning", "message": "of \0 \u2603", **more}


def odd(name: str) -> Iterator[JsonObject]:
    """Bodies that a reader of texts could take for others."""
    other = {"kind": "Pod", "name": "other"}
    yield plain(name, regarding=other)
    yield plain("other", "regarding", involvedObject={"name": name})
    yield plain(name, "regarding", involvedObject={"kind": "Pod"})
    yield plain(name, "regarding", involvedObject={"name": 5})
    yield plain(name, "regarding", involvedObject=None)
    yield plain(name, action='"involvedObject":{"name":"other"}')
    yield plain(name, a={"involvedObject": other})
    yield plain("other", z={"involvedObject": {"name": name}})
    yield {"a": {"involvedObject": other}, "regarding": {"name": name}, "type": "Warning"}
    yield plain(name) | {'x"involvedObject': other, '"regarding': other}
    yield plain(name) | {'"invol"regarding":vedObject': other}
    for about in (
        {"a": {"name": "other"}, "name": name},
        {"a": '"name":"other"', 'b"name': "other", "name": name},
        {"a": "{}\\", "kind": "name", "name": name, "z": "name"},
        {"a": "x" * 3_000, "name": name},
        {"a": ["name", {"name": "other"}], "name": name},
    ):
        yield {"kind": "Event", "involvedObject": about, "type": "Warning"}
    yield {"involvedObject": name, "type": "Warning"}
    yield {"involvedObject": [{"name": name}], "type": "Warning"}
    yield {"metadata": {"managedFields": [{"f:involvedObject": {"f:name": {}}}]}, **plain(name)}


def warned(body: JsonObject) -> str:
    """The name that a body warns about."""
    if '"Warning"' not in json.dumps(body):
        return ""
    for field in ("involvedObject", "regarding"):
        about = body.get(field)
        name = about.get("name") if isinstance(about, dict) else None
        if isinstance(name, str) and name:
            return name
    return ""


def of_event(number: int, body: JsonObject, group: str, type: EventType) -> Draft:
    key = ObjectKey(group, "events", f"ns-{number % 3}", f"e{number:03}")
    return draft(key, type=type, tree={**body, "metadata": {"name": key.name}})


async def test_keys_of_warnings_about_a_name_are_all_that_there_are(
    open_stores: OpenStores,
) -> None:
    draw = random.Random(3)
    plains = [
        (plain(name, field, type=kind), group, type)
        for name in (*NAMES, LONG)
        for field in ("involvedObject", "regarding")
        for kind in ("Warning", "Normal")
        for group in ("", "events.k8s.io", "example.com")
        for type in (EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED)
    ]
    odds = [
        (body, "", EventType.OBJECT_CREATED)
        for name in (*NAMES, "o\"d'd", "\u00e9", "\0", "n" * 3_000)
        for body in odd(name)
    ]
    drawn = draw.sample(plains, len(plains)) + draw.sample(odds, len(odds))
    events = sealed(Head(), *(of_event(number, *one) for number, one in enumerate(drawn)))
    async with open_stores() as stores:
        history = await stores.history("parent")
        await stores.log.append(history, expected=Head(), events=events)
        middle = len(plains) // 2
        fork = await forked(stores, await info_of(stores, history), middle)
        head = await stores.log.head(fork.id)
        own = sealed(head, of_event(999, plain("web"), "", EventType.OBJECT_CREATED))
        await stores.log.append(fork.id, expected=head, events=own)
        of_fork = [*events[:middle], *own]
        for name in (*NAMES, LONG, "other", "none"):
            wanted = KeyFilter("", "events", about=name)
            for place, its, until in (
                (history, events[: len(plains)], len(plains)),
                (history, events[: len(plains)], len(events)),
                (history, events[:middle], middle),
                (fork.id, of_fork, len(of_fork)),
            ):
                truth = {
                    event.key
                    for event in (events[:until] if place == history else of_fork)
                    if event.type is EventType.OBJECT_CREATED and warned(event.object) == name
                }
                keys = await stores.log.keys(
                    place, wanted, until=Revision(until), limit=len(events) + 1
                )
                assert keys == sorted(keys)
                assert truth <= set(keys), name
                if until <= len(plains):
                    assert truth == set(keys) & {event.key for event in its}, name
                few = await stores.log.keys(place, wanted, until=Revision(until), limit=2)
                assert few == keys[:2]

"""Drafts and sealed events with defaults; a test names only what matters to it."""

from app.domain.log import Actor, Draft, Event, EventType, Head, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

START = Instant(1_770_000_000_000_000)


def claim(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey("resource.k8s.io", "resourceclaims", namespace, name)


def draft(
    key: ObjectKey,
    *,
    type: EventType = EventType.OBJECT_CREATED,
    time: int = START,
    tree: JsonObject | None = None,
    user: str = "alice",
) -> Draft:
    return Draft(
        type=type,
        key=key,
        uid=f"uid-{key.name}",
        tree=tree
        or {"kind": "ResourceClaim", "metadata": {"name": key.name}, "spec": {"é": "\0☃"}},
        stamp=Stamp(time=Instant(time), actor=Actor(user=user, groups=("a", "b")), verb="create"),
    )


def sealed(head: Head, *drafts: Draft) -> list[Event]:
    """The events that the drafts become after `head`."""
    events: list[Event] = []
    previous = head.hash
    for number, one in enumerate(drafts, start=head.revision + 1):
        event = seal(one, Revision(number), previous)
        previous = event.hash
        events.append(event)
    return events


def claims(head: Head, count: int, *, prefix: str = "claim", user: str = "alice") -> list[Event]:
    """So many creations after `head`."""
    first = head.revision + 1
    return sealed(
        head,
        *(
            draft(claim(f"{prefix}-{number:06}"), time=START + number, user=user)
            for number in range(first, first + count)
        ),
    )


def same(one: Event, other: Event) -> bool:
    """Equal in all that is stored; the decoded tree is only a cache."""
    return all(
        getattr(one, field) == getattr(other, field)
        for field in one.__struct_fields__
        if field != "tree"
    )

"""When an allocation may have been chosen at the earliest, as a search of a whole history.

It shares no code with `app`: every possible beginning of the queue of a write is tried.
"""

import json
from itertools import pairwise

from app.domain.log import Event, EventType

SECOND = 1_000_000
IN_FLIGHT, AT_ONCE, LONGEST = 15 * SECOND, 5 * SECOND, 120 * SECOND
STEP, MIXED, JITTER = 1 * SECOND, 4 * SECOND, 300_000
APART = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
UNNAMED = "redra:import"
SENT = ("pods", "resourceclaims", "events")


def is_about_object(event: Event) -> bool:
    return event.type.value in ("ObjectCreated", "ObjectUpdated", "ObjectDeleted")


def is_sent(event: Event) -> bool:
    return event.key.resource in SENT or event.type is EventType.REQUEST_OBSERVED


def rising(times: list[int]) -> list[int]:
    """The times that are later than all before them."""
    later: list[int] = []
    for time in times:
        if not later or time > later[-1]:
            later.append(time)
    return later


def longest_steps(times: list[int], most: int) -> list[int]:
    """For each write, the longest step of a limit that the ones after it allow."""
    return [
        min(
            [
                most,
                *(
                    (times[place + apart] - time + JITTER) // apart
                    for apart in APART
                    if place + apart < len(times)
                ),
            ]
        )
        for place, time in enumerate(times)
    ]


def queued_from(times: list[int], now: int, *, is_mixed: bool) -> int:
    most = MIXED if is_mixed else STEP
    steps = [most for _ in times] if is_mixed else longest_steps(times, most)
    begun = now
    for place in range(len(times) - 1, -1, -1):
        row = [*times[place:], now]
        pauses = [after - before - JITTER for before, after in pairwise(row)]
        # A pause is also within the step before which a later one was still possible.
        if max(pauses) > min([MIXED if place == len(times) - 1 else most, *steps[place + 1 :]]):
            break
        begun = min(begun, times[place])
    return max(begun, now - LONGEST)


def is_whole(times: list[int], most: int) -> bool:
    """Whether the first write is in the queue of the last one, as far as pauses tell."""
    pauses = [after - before for before, after in pairwise(times)]
    return max(pauses, default=0) <= most + JITTER and times[-1] - times[0] <= LONGEST


def begun_from(sent: list[Event], user: str, now: int) -> int:
    """When a request of the user that is sent now may have begun to wait."""
    own = rising([one.stamp.time for one in sent if one.stamp.actor.user == user])
    is_unnamed = user == UNNAMED
    if not own or is_whole(own, MIXED if is_unnamed else STEP):
        everyone = rising([one.stamp.time for one in sent])
        return queued_from(everyone, now, is_mixed=True)
    return queued_from(own, now, is_mixed=is_unnamed)


def decided_from(events: list[Event], event: Event, pods=()) -> int:
    now, user = event.stamp.time, event.stamp.actor.user
    known = [one for one in events if one.revision <= event.revision]
    sent = [one for one in known if is_sent(one)]
    is_unnamed = user == UNNAMED
    begun = begun_from(sent, user, now)
    delay = IN_FLIGHT
    has_time = event.stamp.origin is None or event.stamp.origin.time_quality == "exact"
    if pods and not is_unnamed and has_time and all(is_plain(known, uid) for uid in pods):
        delay = min(IN_FLIGHT, now - answered(known, now) + AT_ONCE)
    return min(begun, sent_from(sent, event, {event.uid, *pods})) - delay


def asked(event: Event) -> int:
    origin = event.stamp.origin
    return min(origin.asked, event.stamp.time) if origin and origin.asked else event.stamp.time


def sent_from(sent: list[Event], event: Event, uids: set[str]) -> int:
    """The arrival of the first slow request that leads to the event, one after the other."""
    user, begun = event.stamp.actor.user, asked(event)
    spans = []
    for uid in uids:
        own = [one for one in sent if one.uid == uid and one.stamp.actor.user == user]
        ends = [place for place, one in enumerate(own) if one.type is EventType.OBJECT_DELETED]
        slow = [
            (asked(one), one.stamp.time)
            for one in own[ends[-1] + 1 if ends else 0 :]
            if one.stamp.time - asked(one) >= SECOND
        ]
        for (_, before), (arrival, _) in reversed(list(pairwise([(0, 0), *slow]))):
            if arrival - AT_ONCE > before:
                spans.append((arrival, slow[-1][1]))
                break
        else:
            spans += [(slow[0][0], slow[-1][1])] if slow else []
    for arrival, end in sorted(spans, reverse=True):
        begun = min(begun, arrival) if begun - AT_ONCE <= end else begun
    return begun


def answered(known: list[Event], now: int) -> int:
    """The last time, a second or more ago, at which a write was stored, to a second."""
    marks = [0, 0]
    for time in [one.stamp.time for one in known if is_about_object(one)]:
        if time - marks[-1] >= SECOND:
            marks.append(time)
    return max((mark for mark in marks[-2:] if mark <= now - SECOND), default=0)


def is_plain(known: list[Event], uid: str) -> bool:
    """Whether the pod is there, and waits for neither volumes nor other pods."""
    plain = False
    for event in known:
        if event.uid != uid or event.key.resource not in SENT:
            continue
        if event.type is EventType.OBJECT_DELETED:
            plain = False
        elif event.key[:2] == ("", "pods") and is_about_object(event):
            spec = json.loads(event.body).get("spec")
            spec = spec if isinstance(spec, dict) else {}
            text = json.dumps(spec.get("volumes"))
            waits = "persistentVolumeClaim" in text or "ephemeral" in text
            plain |= "resourceClaims" in spec and not waits and "schedulingGroup" not in spec
    return plain

"""Logs of kube-scheduler at -v=5 and above: attempts to place pods, and what came of them.

    I0102 03:04:05.000006    1 schedule_one.go:323] "Unable to schedule pod; …" pod="ns/a" err="…"

An attempt changes nothing by itself: it is kept as an observed request of the scheduler for the
pod, with the message and its error. The lines of klog have no year; the year is that of the moment
of the recording (`--at`), or of the time that a runtime wrote before the line.
"""

import re
from collections.abc import Iterator

import msgspec

from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.unpacking import ByteSource
from app.domain.log.event import Actor
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

SCHEDULER = Actor(user="system:kube-scheduler")

_LINE = re.compile(
    r"(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d{6})\s+\d+ "
    r"(?P<file>[\w./-]+\.go):\d+\] (?P<rest>.*)"
)
_STAMPED = re.compile(r"(?P<stamp>\d{4}-\d\d-\d\dT\S+)\s+(?:std(?:out|err) [FP] )?(?=[IWEF]\d{4} )")
_MESSAGE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_FIELD = re.compile(r'\b(?P<name>\w+)=(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>\S+))')
_HEAD = re.compile(
    rb"^(?:\S+ (?:std(?:out|err) [FP] )?)?[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ ", re.M
)
_ATTEMPTS = {
    "Attempting to schedule pod": "attempt",
    "Unable to schedule pod; no fit; waiting": "unschedulable",
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": "unschedulable",
    "Error scheduling pod; retrying": "error",
    "Successfully bound pod to node": "bound",
    "Attempting to bind pod to node": "bind",
    "Status after running PostFilter plugins for pod": "postfilter",
    "Failed to bind pod": "error",
}
"""What a message of the scheduler says of an attempt."""


def begins_in(head: bytes) -> bool:
    """True when the first bytes of a text hold lines of klog."""
    return _HEAD.search(head) is not None


def read(source: ByteSource, number: int, options: ReadOptions, notes: Notes) -> Iterator[Record]:
    """The attempts in a log, as observed requests. Other lines are counted and left out."""
    others = 0
    index = 0
    year = options.at if options.at is not None else None
    for line_number, line in source.lines():
        text = line.decode("utf-8", "replace").strip()
        stamp = _STAMPED.match(text)
        match = _LINE.match(text, stamp.end() if stamp else 0)
        attempt = None if match is None else _attempt(match["rest"])
        if match is None or attempt is None:
            others += 1
            continue
        verb, namespace, name, message = attempt
        index += 1
        moment = _moment(match, stamp["stamp"] if stamp else "", year)
        yield Record(
            source=source.name,
            position=str(line_number),
            op=Op.CONTEXT,
            version="v1",
            resource="pods",
            kind="Pod",
            namespace=namespace,
            name=name,
            object_quality=Quality.IDENTITY,
            observed_at=moment,
            time_quality=TimeQuality.NONE if moment is None else TimeQuality.DERIVED,
            order_key=(0, "", 0, number, index),
            actor=SCHEDULER,
            verb=verb,
            losses=(Loss.NO_RV,) if moment is not None else (Loss.NO_RV, Loss.NO_TIME),
            message=message,
        )
    if others:
        notes.pass_over(source.name, "lines of the scheduler that tell of no attempt", others)


def _attempt(rest: str) -> tuple[str, str, str, str] | None:
    """Verb, namespace, name and message of a line about one pod; None for others."""
    message = _MESSAGE.match(rest)
    if message is None:
        return None
    verb = _ATTEMPTS.get(message["text"])
    fields = {
        field["name"]: _unquoted(field["text"]) if field["text"] is not None else field["bare"]
        for field in _FIELD.finditer(rest, message.end())
    }
    namespace, slash, name = fields.get("pod", "").partition("/")
    if verb is None or not slash or not name:
        return None
    parts = [message["text"]]
    parts += [fields[name] for name in ("err", "status") if fields.get(name)]
    if "node" in fields:
        parts.append(f"node {fields['node']}")
    return verb, namespace, name, ": ".join(parts)


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(f'"{text}"'))
    except msgspec.DecodeError:
        return text


def _moment(match: re.Match[str], stamp: str, given: Instant | None) -> Instant | None:
    """The instant of a line: what a runtime wrote before it, else its own with the given year."""
    try:
        if stamp:
            return timestamps.parse(stamp)
        if given is None:
            return None
        year = timestamps.seconds_text(given)[:4]
        return timestamps.parse(f"{year}-{match['month']}-{match['day']}T{match['clock']}Z")
    except TimestampError:
        return None

"""Logs of kube-scheduler at -v=5 and above: attempts to place pods, and what came of them.

    I0102 03:04:05.000006    1 schedule_one.go:323] "Unable to schedule pod; …" pod="ns/a" err="…"

An attempt changes nothing by itself: it is kept as an observed request of the scheduler for the
pod, with the message and its error. The lines of klog have no year; the year is that of the moment
of the recording (`--at`), or of the time that a runtime wrote before the line.

Programs that show logs write words before a line (`[pod/…]`, the host and the unit of a journal),
or keep it in a field of JSON; with `--logging-format=json` the line is JSON itself:

    {"ts":1700000000000.1,"msg":"Attempting to schedule pod","pod":{"namespace":"ns","name":"a"}}
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.unpacking import ByteSource
from app.domain.log.event import Actor
from app.domain.log.records import Loss, Op, Quality, Record, TimeQuality
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

_Attempt = tuple[str, str, str, str]
"""Verb, namespace, name and message."""

_MILLISECONDS_MAX = 10**14
"""A time in milliseconds beyond which a number is none; the year is 5138."""

SCHEDULER = Actor(user="system:kube-scheduler")

_LINE = re.compile(
    r"(?<!\w)(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d{6})\s+\d+ "
    r"(?P<file>[\w./-]+\.go):\d+\] (?P<rest>.*)"
)
_STAMP = re.compile(r"(?<!\S)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MESSAGE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_FIELD = re.compile(r'\b(?P<name>\w+)=(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>\S+))')
_BEGINS = re.compile(
    rb"(?<![^\s\"'`:;(|])[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+\.go:\d+\] "
)
_KEPT_IN = ("log", "message", "MESSAGE", "msg", "textPayload", "jsonPayload", "line")
"""Fields in which programs that collect logs keep a line."""

_STAMPED_IN = ("time", "timestamp", "@timestamp")
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

_IN_JSON = tuple(f'"{text}"'.encode() for text in _ATTEMPTS)


def begins_in(content: bytes) -> bool:
    """True when a text holds lines of klog, or of its form in JSON that tell of an attempt."""
    if _BEGINS.search(content) is not None:
        return True
    return b'"pod"' in content and any(text in content for text in _IN_JSON)


def read(source: ByteSource, number: int, options: ReadOptions, notes: Notes) -> Iterator[Record]:
    """The attempts in a log, as observed requests. Other lines are counted and left out."""
    others = 0
    index = 0
    year = options.at if options.at is not None else None
    for line_number, line in source.lines():
        attempts = list(_attempts(line.decode("utf-8", "replace").strip(), year))
        others += not attempts
        for attempt, moment in attempts:
            verb, namespace, name, message = attempt
            index += 1
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


def _attempts(text: str, year: Instant | None) -> Iterator[tuple[_Attempt, Instant | None]]:
    """The attempts that a line tells of, with their moments."""
    if text.startswith(("{", "[{")):
        yield from _in_json(text.removeprefix("[").rstrip(",]"), year)
        return
    bare = _COLOURS.sub("", text)
    match = _LINE.search(bare)
    attempt = None if match is None else _attempt(match["rest"])
    if match is not None and attempt is not None:
        stamp = _STAMP.search(bare, 0, match.start())
        yield attempt, _moment(match, stamp.group() if stamp else "", year)


def _in_json(text: str, year: Instant | None) -> Iterator[tuple[_Attempt, Instant | None]]:
    """The attempts of a line of JSON: klog's own form, or lines that a collector wrapped."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return
    if not isinstance(value, dict):
        return
    stamp = next((value[name] for name in _STAMPED_IN if isinstance(value.get(name), str)), "")
    whole = _of_fields(value)
    if whole is not None:
        yield whole, _stamped(stamp) or _of_seconds(value.get("ts"))
        return
    for kept in (value[name] for name in _KEPT_IN if name in value):
        inner = _of_fields(kept) if isinstance(kept, dict) else None
        if inner is not None:
            yield inner, _stamped(stamp)
        elif isinstance(kept, str) and (match := _LINE.search(kept)) is not None:
            attempt = _attempt(match["rest"].rstrip())
            if attempt is not None:
                yield attempt, _moment(match, stamp, year)
            return


def _of_fields(tree: dict[str, Any]) -> _Attempt | None:
    """What klog's form in JSON says: the message and its fields by name."""
    text = tree.get("msg", tree.get("message"))
    pod = tree.get("pod")
    if isinstance(pod, dict):
        pod = f"{pod.get('namespace', '')}/{pod.get('name', '')}"
    if not isinstance(text, str) or not isinstance(pod, str):
        return None
    fields = {name: value for name, value in tree.items() if isinstance(value, str)}
    return _meant(text, {**fields, "pod": pod})


def _stamped(stamp: str) -> Instant | None:
    try:
        return timestamps.parse(stamp) if stamp else None
    except TimestampError:
        return None


def _of_seconds(value: Any) -> Instant | None:
    """The moment that klog writes as milliseconds since 1970."""
    if not isinstance(value, int | float) or not 0 < value < _MILLISECONDS_MAX:
        return None
    return Instant(round(value * timestamps.SECOND / 1000))


def _attempt(rest: str) -> _Attempt | None:
    """Verb, namespace, name and message of a line about one pod; None for others."""
    message = _MESSAGE.match(rest)
    if message is None:
        return None
    fields = {
        field["name"]: _unquoted(field["text"]) if field["text"] is not None else field["bare"]
        for field in _FIELD.finditer(rest, message.end())
    }
    return _meant(message["text"], fields)


def _meant(text: str, fields: dict[str, str]) -> _Attempt | None:
    """The attempt that a message with these fields tells of; None for another message."""
    verb = _ATTEMPTS.get(text)
    namespace, slash, name = fields.get("pod", "").partition("/")
    if verb is None or not slash or not name:
        return None
    parts = [text]
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

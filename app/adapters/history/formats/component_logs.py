"""The reader of logs of components: attempts to place pods, reports of kubelets, logged Events.

An attempt is logged by kube-scheduler at -v=5 and above:

    I0102 03:04:05.000006    1 schedule_one.go:323] "Unable to schedule pod; …" pod="ns/a" err="…"

An attempt changes no object: it is recorded as an observed request of the scheduler for the pod,
with the message and its error. Lines of klog have no year; it comes from the time of the recording
(`--at`), or from the timestamp that a runtime wrote before the line.

Log viewers add a prefix to a line (`[pod/…]`, the host and the unit of a journal) or store it in a
JSON field; with `--logging-format=json` the line itself is JSON:

    {"ts":1700000000000.1,"msg":"Attempting to schedule pod","pod":{"namespace":"ns","name":"a"}}

Log services export multi-line documents in JSON or YAML: lists of entries (`gcloud logging read`),
streams of pairs of time and line (Loki), hits (Elasticsearch). A line is found in any field, and
its time is that of the innermost document with a time.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from app.adapters.history import documents, line_marks
from app.adapters.history.formats import (
    collected_events,
    klog_heads,
    klog_values,
    kubelet_lines,
    logged_events,
    older_lines,
)
from app.adapters.history.formats.e2e_events import DumpedEvents
from app.adapters.history.formats.kubelet_lines import KUBELET
from app.adapters.history.formats.logged_events import LoggedEvent, Occurrences
from app.adapters.history.limits import BoundReached
from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log.event import Actor
from app.domain.log.records import (
    KUBELET_FAILURE,
    KUBELET_REPORT,
    Loss,
    Op,
    Quality,
    Record,
    TimeQuality,
)
from app.domain.values import api_groups, timestamps
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant, TimestampError

_Attempt = tuple[str, str, str, str]
"""Verb, namespace, name and message."""

CUT = "the line about an event is cut"
"""The entry of a line that logs an Event and does not go on to its end."""

CUT_POD = "the line about a pod is cut"
"""The entry of such a line of kube-scheduler or a kubelet: what is left may be part of a name."""

_Said: TypeAlias = _Attempt | LoggedEvent | str
_Entry: TypeAlias = tuple[_Said, str, Instant | None]
"""What an entry says, its time as written, and its instant if that is known."""

_MILLISECONDS_MAX = 10**14
"""Exclusive upper bound of a number that is read as milliseconds since 1970, in the year 5138."""

_SECONDS_MAX = 10**11
"""The bound below which a number is seconds: as milliseconds it would be in the year 1973."""

_AUDITED = (api_groups.AUDIT, "auditID")
"""Marks of audit events, which another reader reads."""

SCHEDULER = Actor(user="system:kube-scheduler")

_STAMP = re.compile(
    r"(?<!\S)\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\S*"
    r"| \d\d:\d\d:\d\d(?:\.\d{1,9})? ?(?:UTC|Z|[+-]\d\d:?\d\d)(?!\S))"
)
_LOCAL = re.compile(
    r"(?<!\S)(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?!\S)"
)
"""A time without its zone, which tells the year of the line alone."""

_PARTS = re.compile(
    r"(?P<day>[\d-]{10})[T ](?P<clock>[\d:]{8}(?:\.\d{1,9})?) ?"
    r"(?:UTC|Z|(?P<hours>[+-]\d\d):?(?P<minutes>\d\d))"
)
"""A timestamp as programs write it; the standard has a T and a colon in the zone."""

_MESSAGE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_FIELD = re.compile(r'\b(?P<name>\w+)=(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>\S+))')
_BEGINS = re.compile(
    rb"(?<![^\s\"'`:;(|])[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+\.go:(?:\d+|\.\.\.)\] "
)
_CUT_JSON = re.compile(r'\{"[^\n]{0,200}?"msg":')
"""The beginning of a line of klog in JSON."""

_NAMED_JSON = re.compile(r"^(?:[\w.:+/\[\]-]{1,253} +){1,6}(?=\{\"ts\":)")
"""What stands before a line in JSON: a node, a pod and its container, the head of a journal."""

_STAMPED_IN = (
    *("time", "timestamp", "@timestamp", "date", "__REALTIME_TIMESTAMP"),
    *("TimeGenerated", "Time", "_time", "Date"),
)
"""The fields with the time of a line, the last ones also the titles of tables."""

_DOCUMENT = re.compile(rb"\s*(?:[\[{]|---\s|(?:insertId|textPayload|jsonPayload|labels|logName):)")
_MARK = "\ufeff".encode()
"""The byte order mark, which some editors write before a text."""

MESSAGE_BYTES_MAX = 256
"""Bytes of a message that the end of a piece may cut."""

DEPTH_MAX = 16
"""Levels of a document that are searched for lines of a log."""

_DIGITS_OF_SECONDS = 10
_ATTEMPTS = {
    "Attempting to schedule pod": "attempt",
    "Unable to schedule pod; no fit; waiting": "unschedulable",
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": "unschedulable",
    "Unable to schedule pod, possibly due to node not found; waiting": "error",
    "Error scheduling pod; retrying": "error",
    "Successfully bound pod to node": "bound",
    "Attempting to bind pod to node": "bind",
    "Status after running PostFilter plugins for pod": "postfilter",
    "Failed to bind pod": "error",
}
"""The verb of an attempt, by the message of the scheduler."""


def begins_in(content: bytes) -> bool:
    """True for a text with lines of klog, a logged Event, or a message of an attempt and `pod`."""
    if _BEGINS.search(content) is not None or logged_events.mentioned_in(content):
        return True
    return older_lines.mentioned_in(content) or (b"pod" in content and _is_about_pods(content))


def is_in_row(tree: JsonView) -> bool:
    """True for a row of a table with its time, and with a line about a pod or an Event."""
    return any(tree.get(name) for name in _STAMPED_IN) and tells_in(msgspec.json.encode(tree))


def tells_in(content: bytes) -> bool:
    """True for a text with a message of an attempt or a kubelet, or the words of a logged Event."""
    return _is_about_pods(content) or logged_events.mentioned_in(content)


def is_beside(source: ByteSource) -> bool:
    """True for a source that `tells_in` is true for; it is read in pieces."""
    before = b""
    for chunk in source.chunks():
        if tells_in(before + chunk):
            return True
        before = chunk[-MESSAGE_BYTES_MAX:]
    return False


def _is_about_pods(content: bytes) -> bool:
    is_about_attempts = any(text.encode() in content for text in _ATTEMPTS)
    if is_about_attempts or kubelet_lines.mentioned_in(content):
        return True
    return older_lines.mentioned_in(content)


def read(
    source: ByteSource,
    number: int,
    options: ReadOptions,
    notes: Notes,
    *,
    is_beside_audit: bool = False,
) -> Iterator[Record]:
    """The records of a log: attempts as observed requests, then each logged Event once.

    Other lines are counted and left out; beside audit events, their reader counts them.
    """
    others = 0
    undated = 0
    index = 0
    events: dict[LoggedEvent, Occurrences] = {}
    for position, entries in _entries(source, options.at):
        others += not entries
        for said, clock, moment in entries:
            index += 1
            undated += moment is None and bool(clock) and not isinstance(said, str)
            if isinstance(said, LoggedEvent):
                one = said._replace(series=0)
                seen = events.setdefault(one, Occurrences(position, index))
                seen.add(clock, moment, said.series)
            elif isinstance(said, str):
                place = f"{source.name}:{position}"
                notes.lose(InputError(said, place=place))
            else:
                yield _record(said, moment, source.name, position, (number, index))
    for event, occurrences in events.items():
        yield occurrences.record(event, source.name, number)
    if undated:
        notes.count(
            "lines without a year, which --at names: they have an order, but no time", undated
        )
    if others and not is_beside_audit:
        notes.pass_over(
            source.name, "lines and entries about no attempt, no event and no pod", others
        )


def _record(
    attempt: _Attempt, moment: Instant | None, source: str, position: str, order: tuple[int, int]
) -> Record:
    verb, namespace, name, message = attempt
    return Record(
        source=source,
        position=position,
        op=Op.CONTEXT,
        version="v1",
        resource="pods",
        kind="Pod",
        namespace=namespace,
        name=name,
        object_quality=Quality.IDENTITY,
        observed_at=moment,
        time_quality=TimeQuality.NONE if moment is None else TimeQuality.DERIVED,
        order_key=(0, "", 0, *order),
        actor=KUBELET if verb in (KUBELET_FAILURE, KUBELET_REPORT) else SCHEDULER,
        verb=verb,
        losses=(Loss.NO_RV,) if moment is not None else (Loss.NO_RV, Loss.NO_TIME),
        message=message,
    )


def _entries(source: ByteSource, year: Instant | None) -> Iterator[tuple[str, list[_Entry]]]:
    """The position and the content of each log entry: a line, or an entry of a document."""
    trees = _documents(source)
    if trees is None:
        texts = ((at, line.decode("utf-8", "replace")) for at, line in source.lines())
        dumped = DumpedEvents()
        for line_number, text, is_cut in older_lines.with_cut(klog_values.joined(texts), source):
            if is_cut:
                yield str(line_number), [(CUT_POD, "", None)]
            elif (shown := dumped.read(line_marks.uncoloured(text).rstrip())) is not None:
                yield str(line_number), [(shown[0], "", _stamped(shown[1]))]
            else:
                entries = list(_in_line(text, "", year, 0))
                if entries or not any(mark in text for mark in _AUDITED):
                    yield str(line_number), entries
        return
    for position, value in trees:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _of_document(f"{position}[{index}]", item, year)
        else:
            yield from _of_document(position, value, year)


def _of_document(
    position: str, value: Any, year: Instant | None
) -> Iterator[tuple[str, list[_Entry]]]:
    entries = list(_in_tree(value, "", year, 0))
    if entries or not any(mark in str(value) for mark in _AUDITED):
        yield position, entries


def _documents(source: ByteSource) -> list[tuple[str, Any]] | None:
    """The documents of a text that consists of documents only; None for the lines of a log."""
    if _DOCUMENT.match(source.head(64).removeprefix(_MARK)) is None or documents.is_json_lines(
        source
    ):
        return None
    try:
        return list(documents.read_documents(source))
    except BoundReached:
        raise
    except InputError:
        return None


def _in_text(text: str, stamp: str, year: Instant | None, depth: int) -> Iterator[_Entry]:
    """The entries in the lines of a text, with their times."""
    for _, line in klog_values.joined(enumerate(text.splitlines())):
        yield from _in_line(line, stamp, year, depth)


def _in_line(line: str, stamp: str, year: Instant | None, depth: int) -> Iterator[_Entry]:
    bare = line_marks.uncoloured(line).strip()
    bare = _NAMED_JSON.sub("", bare)
    if bare.startswith(("{", "[{")):
        value = _decoded(bare.removeprefix("[").rstrip(",]") if bare[0] == "[" else bare)
        if value is None and _CUT_JSON.match(bare) is not None and _is_about_pods(bare.encode()):
            yield CUT_POD, "", None
        yield from _in_tree(value, stamp, year, depth + 1)
        return
    if collected_events.is_line(bare):
        before = _STAMP.search(bare)
        moment = _stamped(before.group() if before else stamp)
        event = collected_events.of_line(bare)
        yield event or CUT, "" if moment is None else _ordered(moment), moment
        return
    head = klog_heads.head_of(bare)
    if head is None:
        if (shown := logged_events.for_people(bare)) is not None:
            yield shown[1], shown[0], _stamped(shown[0])
        return
    rest = head.rest
    # A cell of a table doubles its quotes.
    rest = rest.replace('""', '"') if rest.startswith('""') else rest
    said = [each for each in (_said(rest, bare[: head.begin]),) if each is not None]
    for each in said or _reports(rest):
        before = _STAMP.search(bare, 0, head.begin)
        moment = _stamped(before.group() if before else stamp)
        moment = moment or head.moment(_of_day(bare[: head.begin], head.day) or year)
        clock = f"{head.day} {head.clock}" if head.day else ""
        yield each, clock if moment is None else _ordered(moment), moment


def _reports(rest: str) -> list[kubelet_lines.Report] | list[str]:
    """The statements about pods in a line of klog that is no attempt with fields."""
    message = _MESSAGE.match(rest)
    if message is None:
        reports = [*kubelet_lines.of_failed_start(rest), *older_lines.reports(rest)]
        return [CUT_POD] if not reports and older_lines.is_cut(rest) else reports
    fields = _fields(rest)
    if (pods := kubelet_lines.field_of_pods(message["text"])) and _is_cut(fields, pods, rest):
        return [CUT_POD]
    return kubelet_lines.of_fields(message["text"], fields, rest)


def _is_cut(fields: dict[str, str], pods: str, rest: str) -> bool:
    """True for a line that ends before the field with its pods, or within a value."""
    last = fields.get(pods, "")
    if not last or (last.startswith("[") and "]" not in rest.partition(f" {pods}=")[2]):
        return True
    return any(text.startswith('"') or text == "<" for text in fields.values())


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _in_tree(value: Any, stamp: str, year: Instant | None, depth: int) -> Iterator[_Entry]:
    """The entries in a decoded value: klog's JSON format, or lines that a collector wrapped.

    A service may show an entry twice, in a hit and in its fields; it counts once.
    """
    if depth > DEPTH_MAX:
        return
    if isinstance(value, str):
        yield from _in_text(value, stamp, year, depth)
    elif isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0].isdecimal():
            # Loki: nanoseconds and the line.
            stamp, value = value[0], value[1:]
        for item in value:
            yield from _in_tree(item, stamp, year, depth + 1)
    elif isinstance(value, dict):
        stamp = next((str(value[name]) for name in _STAMPED_IN if value.get(name)), stamp)
        whole = _of_fields(value)
        reports = kubelet_lines.of_fields(str(value.get("msg", "")), value)
        for each in reports if whole is None else (whole,):
            moment = _stamped(stamp) or _of_number(value.get("ts"))
            yield each, "" if moment is None else _ordered(moment), moment
        if whole is not None or reports:
            return
        earlier = set[_Entry]()
        namespace = collected_events.namespace_of(value)
        for part in value.values():
            below = _in_tree(part, stamp, year, depth + 1)
            entries = [_placed(each, namespace) for each in below if each not in earlier]
            earlier.update(entries)
            yield from entries


def _placed(entry: _Entry, namespace: str) -> _Entry:
    """The entry, with the namespace of the stream for an Event that leaves it out."""
    said, clock, moment = entry
    if not namespace or not isinstance(said, LoggedEvent) or not said.is_unplaced:
        return entry
    return said._replace(namespace=namespace, is_unplaced=False), clock, moment


def _of_fields(tree: dict[str, Any]) -> _Said | None:
    """The attempt or the Event in klog's JSON format, from the message and its fields."""
    event = logged_events.of_tree(tree) or collected_events.of_tree(tree)
    if event is not None:
        return event
    text = tree.get("msg", tree.get("message"))
    if isinstance(text, str) and text.startswith('"'):
        # A collector took the head of the line apart, and left message and fields.
        return _attempt(text)
    pod = tree.get("pod")
    if isinstance(pod, dict):
        pod = f"{pod.get('namespace', '')}/{pod.get('name', '')}"
    if not isinstance(text, str) or not isinstance(pod, str):
        return None
    fields = {name: value for name, value in tree.items() if isinstance(value, str)}
    return _meant(text, {**fields, "pod": pod})


def _stamped(stamp: str) -> Instant | None:
    """The instant of a timestamp: a text, or seconds since 1970 with digits of a fraction."""
    try:
        if stamp.isdecimal() and _DIGITS_OF_SECONDS <= len(stamp) <= 19:
            micros = stamp.ljust(_DIGITS_OF_SECONDS + 6, "0")[: _DIGITS_OF_SECONDS + 6]
            return Instant(int(micros))
        if (parts := _PARTS.fullmatch(stamp)) is not None:
            stamp = f"{parts['day']}T{parts['clock']}{parts['hours'] or 'Z'}"
            stamp += f":{parts['minutes']}" if parts["minutes"] else ""
        return timestamps.parse(stamp) if stamp else None
    except TimestampError:
        return None


def _of_day(before: str, day: str) -> Instant | None:
    """An instant of the year in a time without a zone before a line of klog of the same day."""
    local = _LOCAL.search(before)
    if local is None or f"{local['month']}{local['day']}" != day:
        return None
    return _stamped(f"{local['year']}-{local['month']}-{local['day']}T00:00:00Z")


def _ordered(moment: Instant) -> str:
    """The instant as a text that sorts like it."""
    return f"{moment:020d}"


def _of_number(value: Any) -> Instant | None:
    """The instant of a time in a field `ts`; None for other values.

    klog writes milliseconds since 1970, managers seconds or text.
    """
    if isinstance(value, str):
        return _stamped(value)
    if not isinstance(value, int | float) or not 0 < value < _MILLISECONDS_MAX:
        return None
    scale = 1 if value < _SECONDS_MAX else 1000
    return Instant(round(value * timestamps.SECOND / scale))


def _said(rest: str, before: str) -> _Said | None:
    """The attempt or the Event of a line of klog; None for other lines."""
    if not logged_events.begins(rest):
        return _attempt(rest)
    component = logged_events.component_before(before)
    if (event := logged_events.of_reference(rest, component)) is not None:
        return event
    fields = _fields(rest)
    if any(text.startswith('"') for text in fields.values() if rest.endswith(text)):
        return CUT
    event = logged_events.of_fields(fields, component)
    is_whole = "message" in fields or "note" in fields
    return event if event is not None or is_whole else CUT


def _attempt(rest: str) -> _Attempt | str | None:
    """Verb, namespace, name and message of a line about one pod; None for others."""
    message = _MESSAGE.match(rest)
    if message is None:
        return None
    fields = _fields(rest)
    if message["text"] in _ATTEMPTS and _is_cut(fields, "pod", rest):
        return CUT_POD
    return _meant(message["text"], fields)


def _fields(rest: str) -> dict[str, str]:
    """The fields behind the message of a line."""
    message = _MESSAGE.match(rest)
    return {
        field["name"]: _unquoted(field["text"]) if field["text"] is not None else field["bare"]
        for field in _FIELD.finditer(rest, 0 if message is None else message.end())
    }


def _meant(text: str, fields: dict[str, str]) -> _Attempt | None:
    """The attempt of a message with these fields; None for other messages."""
    verb = _ATTEMPTS.get(text)
    namespace, slash, name = fields.get("pod", "").partition("/")
    if verb is None or not slash or not name:
        return None
    parts = [text, *(fields[name] for name in ("err", "status") if fields.get(name))]
    if "node" in fields:
        parts.append(f"node {fields['node']}")
    return verb, namespace, name, ": ".join(parts)


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(f'"{text}"'))
    except msgspec.DecodeError:
        return text

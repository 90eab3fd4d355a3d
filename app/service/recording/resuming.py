"""The state of a recording, read from its log: positions of kinds, known objects, counts.

Positions are those of the last report, advanced by the changes that watches have shown since. A
kind with a gap since then has no position: its objects are listed again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.analysis.recordings.fidelity import FidelityCollector
from app.domain.errors import InputError
from app.domain.log import Event, EventType, Head, HistoryInfo, ObjectKey, Revision
from app.domain.log.recorded_cluster import ClusterIdentity, ServedKind
from app.domain.log.records import WATCH, Op, Record
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service.recorded_events import IMPORTS, record_of
from app.service.recording.following import gap
from app.service.recording.journal import RecordingProgress
from app.service.recording.known import KnownObjects
from app.service.recording.window import WindowEntry

FORMAT = "cluster"
"""The format of recordings of this kind, as the opening event names it."""

_PAGE = 2_000


@dataclass(slots=True, kw_only=True)
class Resumed:
    """The state of a recording in its log; `known` by group and resource."""

    head: Head
    progress: RecordingProgress
    known: dict[tuple[str, str], KnownObjects] = field(default_factory=dict)
    opening: JsonView = field(default_factory=dict)


async def resume(log: EventLog, info: HistoryInfo) -> Resumed:
    """Read the log of a recording. Raises InputError for a history that records no cluster."""
    head = await log.head(info.id)
    opening, report = await _reports(log, info, head)
    progress = _progress_of(report.object)
    resumed = Resumed(head=head, progress=progress, opening=opening.object)
    await _take_tail(log, info, report.revision, resumed)
    await _take_objects(log, info, resumed)
    return resumed


async def listed_kinds(log: EventLog, info: HistoryInfo) -> frozenset[str]:
    """The names of the kinds that are recorded as of the last report. Raises InputError."""
    _, report = await _reports(log, info, await log.head(info.id))
    return frozenset(json_tree.texts(report.object, "counted", "listed"))


async def _reports(log: EventLog, info: HistoryInfo, head: Head) -> tuple[Event, Event]:
    """The event that names the cluster, and the last report. Raises InputError."""
    opening = await log.read(info.id, after=Revision(0), limit=1)
    if (
        not opening
        or opening[0].type is not EventType.HISTORY_IMPORTED
        or (json_tree.text(opening[0].object, "format") != FORMAT)
    ):
        raise InputError(
            f"the history {info.name!r} exists and is not a recording of a cluster",
            place="--history",
            cure="choose another name",
        )
    reports = await log.read_object(
        info.id, IMPORTS._replace(name=opening[0].key.name), until=head.revision, limit=1
    )
    return opening[0], reports[0]


def check_same_cluster(resumed: Resumed, identity: ClusterIdentity, name: str) -> None:
    """Raise InputError when the history is a recording of another cluster, or of other namespaces.

    The objects of namespaces that are not read any more would seem to be deleted.
    """
    before = json_tree.objects(resumed.opening, "sources")[0]
    uid, server = str(before["uid"]), str(before["server"])
    is_same = (uid == identity.uid) if uid and identity.uid else (server == identity.server)
    if not is_same:
        is_successor = server == identity.server
        this = "this one has its address now" if is_successor else f"this one is {identity.server}"
        raise InputError(
            f"the history {name!r} records another cluster, {server}; {this}",
            place="--history",
            cure="choose another name, or the context of that cluster",
        )
    # Earlier histories do not have the namespace.
    namespace = str(before.get("namespace", identity.namespace))
    if namespace != identity.namespace:
        raise InputError(
            f"the history {name!r} records {_namespaces(namespace)}, and this recorder reads "
            f"{_namespaces(identity.namespace)}",
            place="--namespace",
            cure="choose another name for the history, or the same namespaces",
        )


def _namespaces(namespace: str) -> str:
    return f"the namespace {namespace}" if namespace else "all namespaces"


def unread(
    resumed: Resumed, kinds: Sequence[ServedKind], source: str, now: Instant
) -> Iterator[WindowEntry]:
    """The gaps of kinds that were followed until now and are not among the `kinds` any more."""
    for name in sorted(resumed.progress.positions.keys() - {kind.name for kind in kinds}):
        resource, _, group = name.partition(".")
        text = (
            "this recorder does not read the kind (not served, or left out); changes of "
            f"{name} are not recorded until one does"
        )
        record = gap(source, ObjectKey(group, resource, "", ""), text, now)
        yield WindowEntry(kind=name, record=record, is_lost=True)


def _progress_of(body: JsonView) -> RecordingProgress:
    positions: Mapping[str, str] = json_tree.mapping(body, "positions")
    return RecordingProgress(
        collector=FidelityCollector.counting_on(json_tree.mapping(body, "counted")),
        positions=dict(positions),
        newest=json_tree.text(body, "newest"),
        alone=frozenset(json_tree.texts(body, "alone")),
    )


async def _take_tail(log: EventLog, info: HistoryInfo, after: Revision, resumed: Resumed) -> None:
    while events := await log.read(info.id, after=after, limit=_PAGE):
        for event in events:
            record = record_of(event)
            if record is not None:
                resumed.progress.collector.add(record)
                resumed.progress.note_newest(record)
                _move(resumed.progress.positions, record)
        after = events[-1].revision


def _move(positions: dict[str, str], record: Record) -> None:
    name = record.key.qualified_resource
    if record.op is not Op.GAP:
        if record.position == WATCH:
            positions[name] = record.resource_version
    elif not record.name:
        positions.pop(name, None)


async def _take_objects(log: EventLog, info: HistoryInfo, resumed: Resumed) -> None:
    after: ObjectKey | None = None
    until = resumed.head.revision
    while events := await log.objects_at(info.id, until, after=after, limit=_PAGE):
        for event in events:
            _note(resumed.known, event)
        after = events[-1].key


def _note(known: dict[tuple[str, str], KnownObjects], event: Event) -> None:
    origin, key = event.stamp.origin, event.key
    version = "" if origin is None else origin.resource_version
    kind = known.setdefault((key.group, key.resource), KnownObjects())
    kind.objects[key.namespace, key.name] = event.uid, version

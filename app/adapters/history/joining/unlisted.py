"""The objects that a list beside a log lacks: those that are gone, and those that may be.

A list is as new as its newest item, or newer. So an object that the sources show at an older
version, and that the list lacks, was deleted by a write that no source has; unless somebody picked
what is listed. What is picked has something in common that the others lack:

    picked by          the items have in common
    a namespace        their namespace
    their names        their namespace, as clients name objects of one only
    a label            its key, and the others lack the key or its values
    a node, a phase    that, in a list of pods alone

A list of several namespaces is of all of them. That objects were left out of a list (`!=`) does not
show: they are taken for gone, and the fidelity report counts them.

A log has ended before a list that shows a later write of a kind that no policy leaves out. Then it
is not known what became of the objects that no list is of.

Parity: history-formats.md 6.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.adapters.history.formats.list_pages import Chains
from app.adapters.history.joining import endings
from app.adapters.history.joining.spool import ORDER_BY_REVISION, Spool, key_of
from app.adapters.history.reading import Notes, absent_record
from app.domain.log import ObjectKey
from app.domain.log.records import ABSENT, Loss, Op, Quality, Record, comparable_version
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonView

_Type = tuple[str, str]
"""Group and resource."""

_GONE = "objects that a list beside the log lacks, although they were there before: taken for gone"
_MAY_BE_GONE = (
    "a list that is newer than the log does not show it: whether it is gone is not known, as what "
    "is listed may have been picked"
)
_NOT_LISTED = (
    "the log ends before a list of other objects: what became of these after its end is not known"
)

_STATES = (
    "SELECT key, uid, version, own, op, row, body IS NOT NULL FROM record WHERE epoch = 0 "
    "AND op IN ('BASELINE', 'ADDED', 'MODIFIED', 'DELETED') ORDER BY key, version, sub"
)
_END = "SELECT max(own) FROM record WHERE source = ? AND epoch = 0"
_NEXT = "SELECT min(own) FROM record WHERE key = ? AND own > ? AND uid = ? AND epoch = 0"
_RESTORED = "SELECT 1 FROM record WHERE epoch > 0 LIMIT 1"


@dataclass(slots=True)
class _Left:
    """An object that no source ends.

    `oldest` and `newest` are its versions, `place` its last place among all versions, and `row` has
    its last state.
    """

    uid: Uid
    oldest: str = ""
    newest: str = ""
    place: str = ""
    row: int = 0


@dataclass(slots=True)
class _List:
    """A list of objects, in one file. Its `version` is known where it is the answer of a server.

    `items` has the uids and versions, `newest` the newest version of each type, `written` that of
    the kinds that no policy leaves out. `labels` has the values of the labels that all items have.
    """

    source: str
    number: int
    version: str = ""
    newest: dict[_Type, str] = field(default_factory=dict)
    items: dict[ObjectKey, tuple[Uid, str]] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    labels: dict[str, set[str]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    phases: set[str] = field(default_factory=set)
    written: str = ""

    @property
    def end(self) -> str:
        """The newest version that it is known to be as new as."""
        return max(self.newest.values())

    def add(self, record: Record) -> None:
        """Record an item."""
        kind, version = (record.group, record.resource), record.order_key[1]
        tree = record.object or {}
        labels = meta.labels(tree)
        if not self.items:
            self.labels = {name: set() for name in labels}
        self.labels = {
            name: {*values, str(labels[name])}
            for name, values in self.labels.items()
            if name in labels
        }
        self.newest[kind] = max(self.newest.get(kind, ""), version)
        self.items[record.key] = record.uid, version
        self.namespaces |= {record.namespace} - {""}
        if endings.is_judged(record):
            self.written = max(self.written, version)
        if kind == api_resources.PODS:
            self.nodes.add(core.node_name(tree))
            self.phases.add(meta.phase(tree))

    def shows(self, key: ObjectKey, known: _Left) -> bool:
        """Whether an object is one of its items."""
        return key in self.items and known.uid in ("", self.items[key][0])

    def was_there(self, key: ObjectKey, known: _Left) -> bool:
        """Whether an object is of what it lists, and existed before its newest item."""
        if not (self.is_of(key) and known.oldest):
            return False
        return known.oldest <= max(self.version, self.newest[key[:2]])

    def is_of(self, key: ObjectKey) -> bool:
        """Whether it is of an object's type, and of its namespace or of all."""
        return key[:2] in self.newest and (
            not key.namespace or len(self.namespaces) > 1 or key.namespace in self.namespaces
        )

    def is_picked(self, tree: JsonView) -> bool:
        """Whether its items may have been picked, so that it has not an object with this state."""
        is_named = len(self.namespaces) < 2 and not self.version
        labels = meta.labels(tree)
        if is_named or len(self.items) == 1:
            return True
        if any(labels.get(name) not in values for name, values in self.labels.items()):
            return True
        is_of_a_node = len(self.nodes) == 1 and core.node_name(tree) not in self.nodes
        # Whichever phase a pod has when the list is made.
        is_of_a_phase = len(self.phases) == 1
        return {key[:2] for key in self.items} == {api_resources.PODS} and (
            is_of_a_node or is_of_a_phase
        )


@dataclass(slots=True)
class ListsBesideLog:
    """The lists and logs of an import; `logs` are the numbers of the files that are logs."""

    logs: set[int] = field(default_factory=set)
    _lists: dict[tuple[str, str], _List] = field(default_factory=dict)

    def note(self, record: Record, number: int) -> None:
        """Record an item of a list. Single objects do not show which others exist."""
        if record.op is not Op.BASELINE or "[" not in record.position or not record.order_key[1]:
            return
        place = record.source, record.position.rpartition("[")[0]
        self._lists.setdefault(place, _List(record.source, number)).add(record)

    def conclude(self, spool: Spool, chains: Chains, notes: Notes) -> None:
        """Add the ends of objects that are gone, and gaps where the end of the log hides others.

        Call it when all records have their places.
        """
        if not self._lists or spool.order != ORDER_BY_REVISION:
            return
        if spool.database.execute(_RESTORED).fetchone() is not None:
            return
        log_end = max(
            (spool.database.execute(_END, (each,)).fetchone()[0] or "" for each in self.logs),
            default="",
        )
        lists = sorted(self._whole(chains, notes), key=lambda each: (each.end, each.number))
        if not log_end or not lists:
            return
        left = _left(spool)
        for each in lists:
            _leave_out_picked(each, spool, left)
        hidden = []
        for index, (key, known) in enumerate(left.items(), start=1):
            later = _after(lists, key, known)
            if later is None:
                continue
            tree = spool.tree(known.row) if known.row else None
            one = next((each for each in later if _is_gone(each, key, known, tree)), None)
            if one is not None:
                notes.count(_GONE)
                spool.put(_end(one, key, known, index))
            elif key.resource != "events":
                hidden.append(key)
        if any(each.written > log_end for each in lists):
            for gap in _gaps(hidden, lists, log_end):
                spool.put(gap)

    def _whole(self, chains: Chains, notes: Notes) -> Iterator[_List]:
        """The lists, without the types of which pages may be missing or are in other files."""
        versions = {(page.source, page.position): page.version for page in notes.pages}
        for place, each in self._lists.items():
            each.version = comparable_version(versions.get(place, ""))
            for kind in list(each.newest):
                listing = (each.source, *kind)
                if listing in chains.partial or listing in chains.together:
                    del each.newest[kind]
            if each.newest:
                yield each


def _left(spool: Spool) -> dict[ObjectKey, _Left]:
    """The objects that no source ends, as the sources show them last."""
    left: dict[ObjectKey, _Left] = {}
    for text, uid, version, own, op, row, has_state in spool.database.execute(_STATES):
        key = key_of(text)
        known = left.get(key)
        if op == Op.DELETED:
            left.pop(key, None)
            continue
        if known is None or (uid and known.uid and uid != known.uid):
            known = left[key] = _Left(uid)
        known.uid = known.uid or uid
        known.oldest = known.oldest or own
        known.newest = own or known.newest
        known.place = version
        known.row = row if has_state else known.row
    return left


def _leave_out_picked(one: _List, spool: Spool, left: dict[ObjectKey, _Left]) -> None:
    """Leave out the types of which a list lacks an object that was there when it was made.

    It was made before the next version of each of its items.
    """
    before: dict[_Type, str] = {}
    for key, (uid, version) in one.items.items():
        (following,) = spool.database.execute(_NEXT, ("\0".join(key), version, uid)).fetchone()
        if following:
            kind = key[:2]
            before[kind] = min(following, before.get(kind, following))
    for key, known in left.items():
        until = before.get(key[:2])
        if until and known.newest >= until and key not in one.items and one.was_there(key, known):
            one.newest.pop(key[:2], None)


def _after(lists: list[_List], key: ObjectKey, known: _Left) -> list[_List] | None:
    """The lists after the last one that shows an object; None if that is the last that is of it."""
    shown = [place for place, each in enumerate(lists) if each.shows(key, known)]
    if not shown:
        return lists
    later = lists[shown[-1] + 1 :]
    return later if any(each.is_of(key) for each in later) else None


def _is_gone(one: _List, key: ObjectKey, known: _Left, tree: JsonView | None) -> bool:
    """Whether an object that a list lacks was there before, and would be listed."""
    return tree is not None and one.was_there(key, known) and not one.is_picked(tree)


def _end(one: _List, key: ObjectKey, known: _Left, index: int) -> Record:
    order = (0, max(one.end, known.place), 4, one.number, index)
    return absent_record(key, known.uid, source=one.source, order_key=order)


def _gaps(hidden: Iterable[ObjectKey], lists: list[_List], log_end: str) -> Iterator[Record]:
    """The gaps of objects that the end of the log hides: of single ones, or of whole kinds."""
    whole = {}
    for key in hidden:
        if any(each.is_of(key) for each in lists):
            yield _gap(
                key, lists[-1], lists[-1].end, (Loss.GAP, Loss.NO_DELETE_STATE), _MAY_BE_GONE
            )
        else:
            is_listed = any(key[:2] in each.newest for each in lists)
            place = ObjectKey(key.group, key.resource, key.namespace if is_listed else "", "")
            whole[place] = _gap(place, lists[-1], log_end, (Loss.GAP,), _NOT_LISTED)
    yield from whole.values()


def _gap(
    key: ObjectKey, one: _List, version: str, losses: tuple[Loss, ...], message: str
) -> Record:
    return Record(
        source=one.source,
        position=f"{ABSENT}{key.resource}",
        op=Op.GAP,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        object_quality=Quality.IDENTITY,
        order_key=(0, version, 4, one.number, 0),
        losses=losses,
        message=message,
    )

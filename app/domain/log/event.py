"""The event: one change in the timeline of one cluster, with the data that later checks need.

An event is written once and never changed. `body` is the canonical JSON of the whole object after
the change (of the last state for `ObjectDeleted`), or of the payload of an event that is not about
an object. `metadata.resourceVersion` inside the body equals the revision.
"""

import re
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, NewType, cast

import msgspec

from app.domain.values import identifiers, timestamps
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

HistoryId = NewType("HistoryId", int)
"""The number of a history; the first part of every key in the store."""

Revision = NewType("Revision", int)
"""Position in one history: 1, 2, 3, … without gaps. 0 is the empty history."""

FORMAT_VERSION = 1
"""Format of the events written by this program; older ones are upcast while reading."""

EVENTS_PAGE = 5_000
"""Events that are read from a log, or appended to one, at once where no setting says otherwise."""

GENESIS = bytes(32)
"""The hash before the first event of a history whose settings are not in its chain."""


class EventType(StrEnum):
    """The type of an event: a fact, named in the past tense."""

    OBJECT_CREATED = "ObjectCreated"
    OBJECT_UPDATED = "ObjectUpdated"
    OBJECT_DELETED = "ObjectDeleted"
    DECISION_RECORDED = "DecisionRecorded"
    HISTORY_IMPORTED = "HistoryImported"
    GAP_OBSERVED = "GapObserved"
    REQUEST_OBSERVED = "RequestObserved"
    CLOCK_ADVANCED = "ClockAdvanced"
    CONTROLLER_RESTARTED = "ControllerRestarted"
    HISTORY_FORKED = "HistoryForked"
    REPLAY_SOUGHT = "ReplaySought"
    CONFLICT_OBSERVED = "ConflictObserved"


_CREATED, _UPDATED, _DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)


class ObjectKey(NamedTuple):
    """The key of an object: API group (empty for core), resource (plural), namespace, name.

    The namespace is empty for cluster-scoped objects. Keys sort by group, resource, namespace,
    name, which is the order of lists.
    """

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def qualified_resource(self) -> str:
        """The resource as kubectl writes it: `resourceclaims.resource.k8s.io`, `pods`."""
        return identifiers.qualified_resource(self.group, self.resource)

    @property
    def namespaced_name(self) -> str:
        """`namespace/name`, or the name of a cluster-scoped object."""
        return identifiers.namespaced_name(self.namespace, self.name)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource}.{self.group}/{place}" if self.group else f"{self.resource}/{place}"


class KeyFilter(NamedTuple):
    """The wanted keys: those of a kind, and of the parts that are not empty.

    `prefix` is the beginning of the name. With `about`, the wanted keys are those of Event objects,
    of any group, that were created to warn about an object of that name: all of them, and perhaps
    others.
    """

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    prefix: str = ""
    about: str = ""

    def takes(self, key: ObjectKey) -> bool:
        """Whether the key is wanted."""
        return (
            (self.group, self.resource) == key[:2]
            and self.namespace in ("", key.namespace)
            and self.name in ("", key.name)
            and key.name.startswith(self.prefix)
        )


DECISION = ObjectKey("redra", "decisions", "", "")
"""The key of decisions in the log; they have the namespace and name of their subject."""


CLOCKS = ObjectKey("redra", "clocks", "", "")
"""The key of time gaps: the recorder's clock differed from the cluster's. No change is missing."""


REPLAYS = ObjectKey("redra", "replays", "", "")
"""The key under which a paced replay records that it moved to another moment."""


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of a request: user name, groups, program."""

    user: str
    groups: tuple[str, ...] = ()
    agent: str = ""
    impersonated_by: str = ""


_Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A number that views can keep; decoding refuses greater ones."""

_Time = Annotated[Instant, msgspec.Meta(ge=timestamps.EARLIEST, le=timestamps.LATEST)]


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source of an imported event: file, position in the file, resource version there.

    `quality` is the object quality and `losses` the loss names of history-formats.md sections 1
    and 3.6; `version` the API version in which the object was recorded. `asked` and `answered` are
    the instants at which the request came and was answered, 0 where the source does not say.
    `replayed` is the revision of the parent's event that a paced replay shows again.
    """

    source: str
    position: str = ""
    resource_version: str = ""
    version: str = ""
    time_quality: str = ""
    quality: str = ""
    losses: tuple[str, ...] = ()
    code: _Number = 0
    asked: _Number = 0
    answered: _Number = 0
    replayed: _Number = 0


class Stamp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The values that a decision may not invent, read once where a request enters and stored.

    `time` is the cluster's time. `uid` is the fresh uid that a create uses; generated name suffixes
    derive from it. `cause` is the revision that caused the command, `observed` the revision of the
    views that the decision was made from (0: none).
    """

    time: _Time
    actor: Actor
    verb: str
    request_id: str = ""
    uid: Uid = NO_UID
    cause: _Number = 0
    observed: _Number = 0
    origin: Origin | None = None


class Draft(msgspec.Struct, kw_only=True):
    """An event before it has a revision: what `decide` returns.

    `tree` may share parts with objects of views. Sealing changes none of it: the event gets a tree
    of its own with the resourceVersion.
    """

    type: EventType
    key: ObjectKey
    uid: Uid
    tree: JsonObject
    stamp: Stamp


class Event(msgspec.Struct, kw_only=True, gc=False):
    """One entry of the log. It is treated as immutable; the decoded tree is filled in on first use.

    `reading` is a value that was read from the tree once, for all folds, together with that tree.
    It is valid only for that tree; `forget_tree` drops both.
    """

    revision: Revision
    type: EventType
    key: ObjectKey
    uid: Uid
    body: bytes
    stamp: Stamp
    hash: bytes = b""
    format: int = FORMAT_VERSION
    tree: JsonObject | None = None
    reading: tuple[JsonObject, object] | None = None

    def forget_tree(self) -> None:
        """Drops the decoded tree; the next access decodes it again."""
        self.tree = self.reading = None

    def undecoded(self) -> "Event":
        """The event without its decoded tree, as it is stored and sent."""
        if self.tree is None and self.reading is None:
            return self
        return msgspec.structs.replace(self, tree=None, reading=None)

    def without_managers(self) -> "Event":
        """A copy whose tree lacks `metadata.managedFields`, unless the event is decoded already.

        Half of an object's bytes name its managers: a reader that does not need them decodes the
        rest in a third of the time.
        """
        if self.tree is not None:
            return self
        return msgspec.structs.replace(self, tree=_decode_without_managers(self.body))

    @property
    def object(self) -> JsonObject:
        """The decoded body. Shared between all readers: never change it."""
        tree = self.tree
        if tree is None:
            tree = self.tree = cast(JsonObject, _decode(self.body))
        return tree

    @property
    def is_about_object(self) -> bool:
        """True for creations, updates and deletions of API objects."""
        # Comparing by identity costs a fraction of a lookup of the enum in a set.
        kind = self.type
        return kind is _CREATED or kind is _UPDATED or kind is _DELETED


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a history: last revision, epoch (the number of lease take-overs), hash, time."""

    revision: Revision = Revision(0)
    epoch: int = 0
    hash: bytes = GENESIS
    time: Instant = Instant(0)


class LoggedChange(NamedTuple):
    """An event without its content: what changed which object."""

    revision: Revision
    type: EventType
    key: ObjectKey
    uid: Uid

    @property
    def is_about_object(self) -> bool:
        """True for creations, updates and deletions of API objects."""
        kind = self.type
        return kind is _CREATED or kind is _UPDATED or kind is _DELETED


class LeaseToken(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of leadership that an append carries: a stale epoch is refused."""

    name: str
    epoch: int
    holder: str = ""


class ChainStart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values from which the hash before the first event of a history is computed."""

    seed: int
    settings: JsonObject
    created: Instant


class HistoryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The store's entry for one history.

    `seed` feeds derived uids in replays; `settings` are profile, gates and quirks as JSON.
    `parent` and `parent_revision` name the source of a copy or a fork. A fork (`is_fork`) shares
    the events up to `parent_revision` with its parent; a copy of a fork has its own. The chain of
    either begins with the settings of the first history of its line, kept in `beginning`.
    `scheduler_profiles` are the further profiles of a recorded scheduler; they follow from its
    bindings, and are there only where a question asks for them.
    """

    id: HistoryId
    name: str
    seed: int = 0
    settings: JsonObject = msgspec.field(default_factory=dict)
    created: Instant = Instant(0)
    parent: HistoryId | None = None
    parent_revision: Revision = Revision(0)
    beginning: ChainStart | None = None
    is_fork: bool = False
    scheduler_profiles: frozenset[str] = frozenset()

    @property
    def begun(self) -> ChainStart:
        """The values that the chain of this history begins with."""
        return self.beginning or ChainStart(
            seed=self.seed, settings=self.settings, created=self.created
        )

    @property
    def has_own_time(self) -> bool:
        """True when its time continues from its last event, and only while it is served."""
        return self.settings.get("ownTime") is True

    @property
    def is_recorded(self) -> bool:
        """True for an imported recording of another cluster, to which nothing is added."""
        return self.settings.get("recorded") is True

    @property
    def is_paced(self) -> bool:
        """True for the history of a paced replay: clients write to it, controllers do not."""
        return self.settings.get("paced") is True

    @property
    def is_decided_elsewhere(self) -> bool:
        """True when no controller runs on the history, because their work is recorded."""
        return self.is_recorded or self.is_paced

    @property
    def was_decided_elsewhere(self) -> bool:
        """True when other controllers wrote its events, or those that it shares with its source."""
        return self.is_decided_elsewhere or self.begun.settings.get("recorded") is True


UNFINISHED = "~"
"""Prefix of the names of histories that are still being made; users cannot choose such names."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """The remains of a deleted history: its settings, its head, who deleted it and when.

    `time` is the cluster's time of the last event, `deleted` that of the deletion.
    """

    name: str
    seed: int
    settings: JsonObject
    created: Instant
    revision: Revision
    hash: bytes
    time: Instant
    deleted: Instant
    deleted_by: str


_decoder = msgspec.json.Decoder()


def _decode(body: bytes) -> Any:
    return _decoder.decode(body)


_begins = re.compile(rb'\{"apiVersion":"[^"]*","kind":"[^"]*","metadata":\{').match
_MANAGERS, _NAME, _VERSION = b'"managedFields":[', b'],"name":', b'"resourceVersion":"'


def _decode_without_managers(body: bytes) -> Any:
    """The tree without the managers, which stand before the name in canonical bytes.

    The metadata come first; before the managers they have texts and lists of texts, and after them
    the version. Managers that follow a version are those of another object inside of this one.
    """
    first = body.find(_MANAGERS) if _begins(body) else -1
    end = -1 if first < 0 else body.find(_NAME, first)
    if end < 0 or body.find(_VERSION, 0, first) >= 0:
        return _decode(body)
    try:
        return _decode(body[:first] + body[end + 2 :])
    except msgspec.DecodeError:
        # The list contains a name of its own: its brackets do not match without the rest.
        return _decode(body)

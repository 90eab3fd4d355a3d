"""The event: one change of one cluster's timeline, with everything needed to judge it later.

An event is written once and read for ever. `body` is the canonical JSON of the whole object after
the change (of the last state for `ObjectDeleted`), or of the payload of an event that is not about
an object. `metadata.resourceVersion` inside the body equals the revision.
"""

from enum import StrEnum
from typing import Any, NamedTuple, NewType, cast

import msgspec

from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

HistoryId = NewType("HistoryId", int)
"""The number of a history; first part of every key in the store."""

Revision = NewType("Revision", int)
"""Position in one history: 1, 2, 3, … without gaps. 0 is the empty history."""

FORMAT_VERSION = 1
"""Format of the events written by this program; older ones are upcast while reading."""

GENESIS = bytes(32)
"""The hash before the first event of a history whose settings are not in its chain."""


class EventType(StrEnum):
    """Facts in the past tense."""

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
    """Which object: API group (empty for core), resource (the plural), namespace, name.

    The namespace is empty for cluster-scoped objects. Keys sort by group, resource, namespace,
    name, which is the order of lists.
    """

    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource}.{self.group}/{place}" if self.group else f"{self.resource}/{place}"


DECISION = ObjectKey("redra", "decisions", "", "")
"""Where decisions stand in the log; namespace and name are those of the subject."""


CLOCKS = ObjectKey("redra", "clocks", "", "")
"""Where gaps of time stand: the clock of a recorder was not the cluster's. No change is missing."""


REPLAYS = ObjectKey("redra", "replays", "", "")
"""Where a paced replay notes that it moved to another moment of its recording."""


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asked: user name, groups, program."""

    user: str
    groups: tuple[str, ...] = ()
    agent: str = ""
    impersonated_by: str = ""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an imported event comes from: file, place in it, the version it had there.

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
    code: int = 0
    asked: int = 0
    answered: int = 0
    replayed: int = 0


class Stamp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Everything that a decision may not invent, taken once at the edge and stored.

    `time` is the cluster's time. `uid` is the fresh uid that a create uses; generated name suffixes
    derive from it. `cause` is the revision that provoked the command, `observed` the revision that
    the decider looked at (0: none).
    """

    time: Instant
    actor: Actor
    verb: str
    request_id: str = ""
    uid: str = ""
    cause: int = 0
    observed: int = 0
    origin: Origin | None = None


class Draft(msgspec.Struct, kw_only=True):
    """An event before it has a revision: what `decide` returns.

    `tree` is owned by the draft; the writer puts the resourceVersion into its metadata.
    """

    type: EventType
    key: ObjectKey
    uid: str
    tree: JsonObject
    stamp: Stamp


class Event(msgspec.Struct, kw_only=True, gc=False):
    """One entry of the log. Treated as immutable; the decoded tree is filled in on first use.

    `reading` is what somebody has read of the tree for all who fold the event, with the tree that
    it was read from: of another one it says nothing. Both go together (`forget_tree`).
    """

    revision: Revision
    type: EventType
    key: ObjectKey
    uid: str
    body: bytes
    stamp: Stamp
    hash: bytes = b""
    format: int = FORMAT_VERSION
    tree: JsonObject | None = None
    reading: tuple[JsonObject, object] | None = None

    def forget_tree(self) -> None:
        """Let go of what was decoded; it is decoded again when somebody asks."""
        self.tree = self.reading = None

    def undecoded(self) -> "Event":
        """The event without what was decoded, as it is stored and sent."""
        if self.tree is None and self.reading is None:
            return self
        return msgspec.structs.replace(self, tree=None, reading=None)

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
        # Compared by identity: looking an enum up in a set costs several times as much.
        kind = self.type
        return kind is _CREATED or kind is _UPDATED or kind is _DELETED


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a history: last revision, epoch (counts lease take-overs), hash, time."""

    revision: Revision = Revision(0)
    epoch: int = 0
    hash: bytes = GENESIS
    time: Instant = Instant(0)


class LeaseToken(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of leadership that an append carries: a stale epoch is refused."""

    name: str
    epoch: int
    holder: str = ""


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """What the hash before the first event of a history is made from."""

    seed: int
    settings: JsonObject
    created: Instant


class HistoryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One history as the store knows it.

    `seed` feeds derived uids in replays; `settings` are profile, gates and quirks as JSON.
    `parent` and `parent_revision` name what a copy or a fork was made from. The events of a fork up
    to `parent_revision` are those of its parent (`is_fork`), or were, in a copy of it. Its chain
    begins with the settings of another history, the first of its line: that is `beginning`.
    """

    id: HistoryId
    name: str
    seed: int = 0
    settings: JsonObject = msgspec.field(default_factory=dict)
    created: Instant = Instant(0)
    parent: HistoryId | None = None
    parent_revision: Revision = Revision(0)
    beginning: Beginning | None = None
    is_fork: bool = False

    @property
    def begun(self) -> Beginning:
        """What its chain begins with."""
        return self.beginning or Beginning(
            seed=self.seed, settings=self.settings, created=self.created
        )

    @property
    def has_own_time(self) -> bool:
        """True when its time goes on from its last event, and only while somebody serves it."""
        return self.settings.get("ownTime") is True

    @property
    def is_recorded(self) -> bool:
        """True for an imported recording: what it shows happened elsewhere, nobody adds to it."""
        return self.settings.get("recorded") is True

    @property
    def is_paced(self) -> bool:
        """True for what a paced replay shows again; clients write to it, controllers do not."""
        return self.settings.get("paced") is True

    @property
    def is_decided_elsewhere(self) -> bool:
        """True where no controller runs: what they do is recorded."""
        return self.is_recorded or self.is_paced


UNFINISHED = "~"
"""Names that begin so are of histories that are still being made; nobody can give one."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a deleted history: what it was, how it ended, who deleted it and when.

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

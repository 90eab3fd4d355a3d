"""The canonical record: one change of a recorded cluster, independent of the file format.

Every reader of a history format yields records; no later step knows the format
(history-formats.md 1). A record contains the object after the change, or an `Effect` that derives
it from the last known state. Losses name the information that a record lacks (3.6).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from app.domain.log.event import Actor, EventType, ObjectKey
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

KUBELET_FAILURE = "kubelet-failure"
"""The verb of what a kubelet logged about a pod with which it failed."""

KUBELET_REPORT = "kubelet-report"
"""The verb of what else a kubelet logged about a pod."""


class Op(StrEnum):
    """The operation that a record describes.

    `BASELINE`: the object existed before the recording began. `GAP`: a period in which changes
    may be missing. `CONTEXT`: a request that changed nothing (refused, dry run, empty).
    """

    BASELINE = "BASELINE"
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    GAP = "GAP"
    CONTEXT = "CONTEXT"


LIST, WATCH = "list", "watch"
"""The positions of records from a recorder of a cluster: from a list, or from a watch."""

ABSENT = "absent/"
"""The beginning of the position of an object's end that follows from a list without it."""

IMPORTER_USER = "redra:import"
"""The author of events whose source does not name one."""

_OWN_STATEMENTS = frozenset({EventType.HISTORY_IMPORTED.value, EventType.GAP_OBSERVED.value})

BASELINE_VERB = "baseline"
"""The verb of an object that existed when the recording began, or was first seen later."""

CHANGES = frozenset({Op.BASELINE, Op.ADDED, Op.MODIFIED, Op.DELETED})
"""The operations that add, change or remove an object."""


class TimeQuality(StrEnum):
    """The reliability of a record's time, best first."""

    EXACT = "exact"
    DERIVED = "derived"
    NONE = "none"


class Quality(StrEnum):
    """The reliability of a record's object, best first."""

    FULL = "full"
    RECONSTRUCTED = "reconstructed"
    PARTIAL = "partial"
    IDENTITY = "identity"


class Loss(StrEnum):
    """The names of information that a source lacks. Parity: history-formats.md 3.6.

    `CONTRADICTED`: sources contradict each other. `TIMES_CONTRADICT`: times contradict the order.
    `IMMUTABLE`: the object has another value than before of what no write changes.
    `CLOCKS_DIFFER`: a binding is dated before its reservation, less than clocks may differ.
    `PRINTED`: the object was read from output of kubectl for people or from a log: few fields.
    `LATE`: a watch showed the change after later ones of other kinds had been recorded.
    """

    NO_BASELINE = "no_baseline"
    NO_STATUS = "no_status"
    NO_UID = "no_uid"
    NO_RV = "no_rv"
    NO_TIME = "no_time"
    COARSE_TIME = "coarse_time"
    NO_ACTOR = "no_actor"
    NO_MANAGED_FIELDS = "no_managed_fields"
    NO_DELETE_STATE = "no_delete_state"
    NO_DELETES = "no_deletes"
    TRUNCATED_BODY = "truncated_body"
    METADATA_ONLY = "metadata_only"
    UNKNOWN_PATCH = "unknown_patch"
    SYNTHETIC_DELETE = "synthetic_delete"
    SYNTHETIC_CREATE = "synthetic_create"
    GAP = "gap"
    SPEC_ONLY = "spec_only"
    REDACTED = "redacted"
    UNDECODABLE = "undecodable"
    ENCRYPTED = "encrypted"
    VERSION_GUESS = "version_guess"
    COLLAPSED = "collapsed"
    CONTRADICTED = "contradicted"
    IMMUTABLE = "immutable_changed"
    TIMES_CONTRADICT = "times_contradict"
    CLOCKS_DIFFER = "clocks_differ"
    LATE = "late"
    PRINTED = "printed"


class BoundEffect(msgspec.Struct, frozen=True, kw_only=True, tag="bound"):
    """The pod was assigned to `node`; labels and annotations of the binding are merged into it."""

    node: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ScaledEffect(msgspec.Struct, frozen=True, kw_only=True, tag="scaled"):
    """The parent of a Scale got this number of replicas."""

    replicas: int


class TerminatingEffect(msgspec.Struct, frozen=True, kw_only=True, tag="terminating"):
    """Deletion was requested; whether it ends the object at once depends on the object's state.

    `grace_seconds` is None when the object's own grace period applies. `propagation` is the policy
    that the request names, empty if it names none.
    """

    grace_seconds: int | None = None
    propagation: str = ""


class PatchedEffect(msgspec.Struct, frozen=True, kw_only=True, tag="patched"):
    """A patch of the last state."""

    media_type: str
    body: JsonObject | list[JsonObject]


Effect: TypeAlias = BoundEffect | ScaledEffect | TerminatingEffect | PatchedEffect
"""A change that derives the object from its last known state, when the source lacks the object."""

OrderKey: TypeAlias = tuple[int, str, int, int, int]
"""Epoch, comparable resource version or time, index within it, number of the source, position."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, gap or observed request. The fields follow history-formats.md section 1.

    `source` and `position` locate it in the source. `object` is the complete object after the
    change, or for `DELETED` its last known state; it is None when `effect` applies or only the key
    is known. `code` and `message` are the answer to a request that changed nothing; `message` also
    describes a gap, and `pool` (`DRIVER/POOL`) is the one pool whose slices a gap of slices is of.
    `upon` is the version that the request names as the one it changes, `meant` the uid of the
    object: the server refuses any other. `sent` is the patch that an `object` answers. `account` is
    the uid of the service account that sent the request, if it was one. `asked_at` is the instant
    at which the request arrived, in records whose `observed_at` is the instant of the answer.
    `settled_at` is set when sources are joined: an instant near `observed_at` that never decreases
    along the order. `is_typed` is true for an item of a list that names no kind: a client with a
    type for each kind may have left out fields that it does not know.
    """

    source: str
    position: str
    op: Op
    group: str = ""
    version: str = ""
    resource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: Uid = NO_UID
    resource_version: str = ""
    upon: str = ""
    meant: Uid = NO_UID
    sent: PatchedEffect | None = None
    object: JsonObject | None = None
    object_quality: Quality = Quality.FULL
    observed_at: Instant | None = None
    time_quality: TimeQuality = TimeQuality.NONE
    order_key: OrderKey = (0, "", 0, 0, 0)
    subresource: str = ""
    actor: Actor | None = None
    account: str = ""
    verb: str = ""
    request_id: str = ""
    losses: tuple[Loss, ...] = ()
    code: int = 0
    message: str = ""
    pool: str = ""
    effect: Effect | None = None
    asked_at: Instant | None = None
    settled_at: Instant | None = None
    is_typed: bool = False

    @property
    def key(self) -> ObjectKey:
        """The key of the record's object; parts are empty when a gap covers several objects."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)

    @property
    def is_deletion_request(self) -> bool:
        """True for a request to delete, which names a version as its condition and no content.

        An update that removes the last finalizer also ends an object, and names what it read.
        """
        return self.op is Op.DELETED and self.verb in ("delete", "deletecollection")

    @property
    def place(self) -> str:
        """The source and position, for messages."""
        return f"{self.source}:{self.position}" if self.position else self.source


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """Two places of a recording that show one object in ways that do not fit together.

    `path` is the first field that does not fit. Without a `version`, the two show two versions.
    """

    key: ObjectKey
    version: str
    first: str
    second: str
    path: str

    def __str__(self) -> str:
        of_what = f" at version {self.version}" if self.version else ""
        how = "differently" if self.version else "in ways that do not fit"
        is_one = self.first == self.second
        who = f"{self.first} shows" if is_one else f"{self.first} and {self.second} show"
        return f"{who} {self.key}{of_what} {how}: {self.path}"


def join_losses(first: Iterable[Loss], second: Iterable[Loss]) -> tuple[Loss, ...]:
    """The union of both sets, as a sorted tuple."""
    return tuple(sorted({*first, *second}))


COMPARABLE_DIGITS_MAX = 9999
"""The most digits of a resource version; a longer number is not one."""


def comparable_version(text: str) -> str:
    """A text that sorts as the resource version does as an integer; empty if it is not a number.

    A number has only digits and no leading zero. Parity: history-formats.md 3.2. Example: `9` →
    `00019`, `10` → `000210`, `007` → ``.
    """
    if not text or not text.isascii() or not text.isdigit() or (text[0] == "0" and text != "0"):
        return ""
    return f"{len(text):04d}{text}" if len(text) <= COMPARABLE_DIGITS_MAX else ""


def compared_version(comparable: str) -> int:
    """The resource version of a text that sorts as it does: `000210` → 10."""
    return int(comparable[4:])


def named_author(user: str) -> str:
    """The author of an event in a sentence: `an unrecorded user` where the source names none."""
    return "an unrecorded user" if user == IMPORTER_USER else user


def shown_author(user: str, kind: str) -> str:
    """The author of an event in a column: `unrecorded` where the source names none.

    What an import or a recorder states itself, `kind` says.
    """
    is_unnamed = user == IMPORTER_USER and kind not in _OWN_STATEMENTS
    return "unrecorded" if is_unnamed else user

"""The commands to the log, which are the same for users and controllers.

`lifecycle.decide(reader, command, stamp, rules)` turns a command into drafts of events or raises
`Rejected`. Commands carry trees in any served version; `version` names it.

A command is made for each write, so it is a struct: a frozen dataclass sets each field with a call,
and takes more than ten times as long to make. `msgspec.structs.replace` copies one with changes.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from app.domain.log import Actor, EventType, ObjectKey, Origin
from app.domain.objects.access.escalation import GiverRights
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.objects.review.attributes import Requester
from app.domain.objects.review.changes import Review
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


class PatchType(StrEnum):
    """The type of a patch; the values are the media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class FieldValidation(StrEnum):
    """The handling of unknown and duplicate fields."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class Propagation(StrEnum):
    """The effect of a delete on dependents."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of every write.

    `field_manager` is empty if the default (first part of the user agent) applies.
    `field_validation` selects the handling of unknown fields; `decoding_problems` are problems
    found while decoding the body. `rights` restrict changes of a claim's status by part, and roles
    and bindings to rights that the writer holds; None allows all changes. A write that
    `skips_review` is a step of a write that policies reviewed as a whole. `review` is the review by
    webhooks.
    """

    field_manager: str = ""
    force: bool = False
    dry_run: bool = False
    field_validation: FieldValidation = FieldValidation.WARN
    decoding_problems: tuple[str, ...] = ()
    rights: ClaimRights | GiverRights | None = None
    skips_review: bool = False
    review: Review | None = None
    requester: Requester | None = None


class CreateObject(msgspec.Struct, frozen=True, kw_only=True):
    """Creates an object; `key.name` may be empty if the tree has a generateName."""

    key: ObjectKey
    version: str
    tree: JsonObject
    options: WriteOptions = WriteOptions()


class UpdateObject(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces the object, or with `subresource` (status, finalize, …) that part of it."""

    key: ObjectKey
    version: str
    tree: JsonObject
    subresource: str = ""
    options: WriteOptions = WriteOptions()


class PatchObject(msgspec.Struct, frozen=True, kw_only=True):
    """Patches the object; `body` is a list of operations for JSON patches, else a tree."""

    key: ObjectKey
    version: str
    type: PatchType
    body: JsonObject | list[JsonObject]
    subresource: str = ""
    options: WriteOptions = WriteOptions()


class DeleteObject(msgspec.Struct, frozen=True, kw_only=True):
    """Deletes the object, at once or after its grace period and finalizers."""

    key: ObjectKey
    version: str = "v1"
    grace_seconds: int | None = None
    propagation: Propagation | None = None
    uid: Uid = NO_UID
    resource_version: str = ""
    options: WriteOptions = WriteOptions()


class BindPod(msgspec.Struct, frozen=True, kw_only=True):
    """Assigns a pod to a node, as the binding subresource does (controllers.md 4.6)."""

    key: ObjectKey
    node: str
    uid: Uid = NO_UID
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    options: WriteOptions = WriteOptions()


class RecordDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Stores a controller's decision, which precedes its effects in the same append.

    `body` is JSON: `controller`, `outcome`, `inputs` (volatile values that took part), `summary`
    (bounded reasons), `plan` (digest of the commands).
    """

    namespace: str
    name: str
    body: JsonObject


class RecordFact(msgspec.Struct, frozen=True, kw_only=True):
    """Stores an event not about an object: import, gap, observed request, clock, restart."""

    type: str
    key: ObjectKey
    body: JsonObject


class ImportObject(msgspec.Struct, frozen=True, kw_only=True):
    """Stores a recorded state unchanged, without validation, generation or defaulting.

    `operation` is ADDED, MODIFIED or DELETED; the tree is in the storage version.
    """

    operation: str
    key: ObjectKey
    uid: Uid
    tree: JsonObject
    origin: Origin | None = None


class ReplayEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Replays a recorded event in a history to which clients write as well.

    `tree` is the object after the recorded change, `before` the recorded object before it, or None.
    Changes that clients made in the meantime are kept (`replaying.rebasing`). The event gets the
    recorded author, verb and request id, and the recorded `time` unless other events are later.
    """

    type: EventType
    key: ObjectKey
    uid: Uid
    tree: JsonObject
    before: JsonObject | None
    time: Instant
    actor: Actor
    verb: str
    request_id: str
    origin: Origin


Command: TypeAlias = (
    CreateObject
    | UpdateObject
    | PatchObject
    | DeleteObject
    | BindPod
    | RecordDecision
    | RecordFact
    | ImportObject
    | ReplayEvent
)


def verb_of(command: Command) -> str:
    """The API verb of a command if the caller names none."""
    match command:
        case CreateObject():
            return "create"
        case UpdateObject():
            return "update"
        case PatchObject():
            return "patch"
        case DeleteObject():
            return "delete"
        case BindPod():
            return "create"
        case RecordDecision():
            return "decide"
        case RecordFact():
            return "record"
        case ImportObject():
            return "import"
        case ReplayEvent(verb=verb):
            return verb or "replay"

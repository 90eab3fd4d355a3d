"""What can be asked of the log: imperative, complete, and the same for users and controllers.

`lifecycle.decide(reader, command, stamp, rules)` turns a command into drafts of events or raises
`Rejected`. Commands carry trees in any served version; `version` names it.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from app.domain.log import Actor, EventType, ObjectKey, Origin
from app.domain.objects.access.escalation import GiverRights
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.objects.review.attributes import Requester
from app.domain.objects.review.changes import Review
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


class PatchType(StrEnum):
    """How a patch body is to be applied; the values are the media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class FieldValidation(StrEnum):
    """What to do about unknown and duplicate fields."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


class Propagation(StrEnum):
    """What a delete does to dependents."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Options every write shares.

    `field_manager` is empty when the default (first part of the user agent) applies. `strict` tells
    what happens to unknown fields; `unknown_fields` are problems found while decoding the body.
    With `rights`, changes of a claim's status are allowed part by part, and roles and bindings as
    far as the writer holds what they give; None allows all of it. A write that `skips_review` is a
    step of one that policies were asked about as a whole. `review` is what webhooks said of it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateObject:
    """Create; `key.name` may be empty when the tree has a generateName."""

    key: ObjectKey
    version: str
    tree: JsonObject
    options: WriteOptions = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateObject:
    """Replace the object, or with `subresource` (status, finalize, …) that part of it."""

    key: ObjectKey
    version: str
    tree: JsonObject
    subresource: str = ""
    options: WriteOptions = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject:
    """Patch; `body` is a list of operations for JSON patches, else a tree."""

    key: ObjectKey
    version: str
    type: PatchType
    body: JsonObject | list[JsonObject]
    subresource: str = ""
    options: WriteOptions = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete, at once or after grace and finalizers."""

    key: ObjectKey
    version: str = "v1"
    grace_seconds: int | None = None
    propagation: Propagation | None = None
    uid: str = ""
    resource_version: str = ""
    options: WriteOptions = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPod:
    """Assign a pod to a node, as the binding subresource does (controllers.md 4.6)."""

    key: ObjectKey
    node: str
    uid: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    options: WriteOptions = WriteOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDecision:
    """Store a controller's decision; stands before the effects it explains in one append.

    `body` is JSON: `controller`, `outcome`, `inputs` (volatile values that took part), `summary`
    (bounded reasons), `plan` (digest of the commands).
    """

    namespace: str
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFact:
    """Store an event that is not about an object: import, gap, observed request, clock, restart."""

    type: str
    key: ObjectKey
    body: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportObject:
    """Take over a recorded state as it is, without validation, generation or defaulting rules.

    `operation` is ADDED, MODIFIED or DELETED; the tree is in the storage version.
    """

    operation: str
    key: ObjectKey
    uid: str
    tree: JsonObject
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEvent:
    """Show a recorded event again in a history to which clients write as well.

    `tree` is the object after the recorded change, `before` the object as it was recorded before,
    None where there was none. What clients have changed meanwhile is kept (`replaying.rebasing`).
    The event gets the recorded `time` unless others are later, author, verb and request id.
    """

    type: EventType
    key: ObjectKey
    uid: str
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
    """The API verb under which a command is recorded when the caller names none."""
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

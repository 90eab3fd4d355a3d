"""The step from a command to the events of its append.

The command is decided against the staged objects, values of Secrets are protected, the drafts are
sealed, and the events are staged. Every writer uses this step: the group writer, the loop of
replays and the hypothetical cluster of a proposal.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from app.domain.errors import TooLarge
from app.domain.log import Draft, Event, Revision, Stamp
from app.domain.log.chain import numbered, seal
from app.domain.objects import registry
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.rules import Rules
from app.domain.objects.write import admission, lifecycle
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    ImportObject,
    PatchObject,
    PatchType,
    ReplayEvent,
    UpdateObject,
    verb_of,
)
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.staging import StagedObjects


def decide_and_seal(
    command: Command,
    staged: StagedObjects,
    stamp: Stamp,
    rules: Rules,
    *,
    new_uid: Callable[[], str],
    object_bytes_max: int | None = None,
) -> tuple[Decided, list[Event]]:
    """Returns the result of a command and its events, which are staged in `staged`.

    The commands of one append share `stamp`: its verb may be empty, and each command gets its own
    origin and, if it creates an object, a new uid. Without `object_bytes_max` the size of objects
    is not limited.
    Raises Rejected, and TooLarge for an object that grows beyond the bound; `staged` is then
    unchanged.
    """
    stamp = _stamp_of(command, staged, stamp, new_uid)
    decided = lifecycle.decide(staged, command, stamp, rules)
    drafts = _protected(decided.drafts, staged, rules.secrets)
    events = _sealed(drafts, staged)
    if object_bytes_max is not None:
        _check_sizes(events, command, staged, object_bytes_max)
    staged.stage(events)
    for draft, stored, event in zip(decided.drafts, drafts, events, strict=True):
        if draft.tree is decided.tree:
            # The response keeps the values that are protected in the event.
            response = event.object if stored is draft else numbered(draft.tree, event.revision)
            decided = replace(decided, tree=response)
    return decided, events


def creates(command: Command, staged: StagedObjects) -> bool:
    """Whether the command creates an object if it is not refused.

    An apply creates a missing object, and so does an update for some kinds.
    """
    match command:
        case CreateObject():
            return True
        case PatchObject(key=key, type=PatchType.APPLY):
            kind = registry.find(key.group, key.resource)
        case UpdateObject(key=key):
            kind = registry.find(key.group, key.resource)
            if kind is None or not kind.created_by_update:
                return False
        case _:
            return False
    return staged.event(key if kind is None else admission.storage_key(kind, key)) is None


def _stamp_of(
    command: Command, staged: StagedObjects, stamp: Stamp, new_uid: Callable[[], str]
) -> Stamp:
    if isinstance(command, ReplayEvent):
        return replace(
            stamp,
            time=max(command.time, staged.time),
            actor=command.actor,
            verb=verb_of(command),
            request_id=command.request_id,
            origin=command.origin,
        )
    return replace(
        stamp,
        verb=stamp.verb or verb_of(command),
        uid=new_uid() if creates(command, staged) else "",
        origin=command.origin if isinstance(command, ImportObject) else None,
    )


def _sealed(drafts: Sequence[Draft], staged: StagedObjects) -> list[Event]:
    revision, previous = staged.revision, staged.hash
    events: list[Event] = []
    for draft in drafts:
        revision = Revision(revision + 1)
        event = seal(draft, revision, previous)
        previous = event.hash
        events.append(event)
    return events


def _check_sizes(
    events: Sequence[Event], command: Command, staged: StagedObjects, bytes_max: int
) -> None:
    """Raises TooLarge if a command makes an object larger than `bytes_max`."""
    if not isinstance(command, CreateObject | UpdateObject | PatchObject):
        return
    for event in events:
        size = len(event.body)
        if size <= bytes_max or not event.is_about_object:
            continue
        before = staged.event(event.key)
        if before is None or size > len(before.body):
            raise TooLarge(f"the object would have {size} bytes; at most {bytes_max} are stored")


def _protected(
    drafts: Sequence[Draft], staged: StagedObjects, cipher: SecretCipher | None
) -> Sequence[Draft]:
    """The drafts to store, with protected values; the same sequence if it contains no Secret."""
    if cipher is None:
        return drafts
    # A loop, because every write runs this code: a generator costs several times as much.
    for draft in drafts:
        if secret_values.is_secret(draft.key):
            break
    else:
        return drafts
    stored: list[Draft] = []
    for draft in drafts:
        if secret_values.is_secret(draft.key):
            event = staged.event(draft.key)
            before = None if event is None else event.object
            tree = secret_values.protected(draft.key, draft.tree, cipher, before)
            draft = replace(draft, tree=tree)
        stored.append(draft)
    return stored

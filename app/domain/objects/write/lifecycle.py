"""The decision of every command: it becomes drafts of events, or is refused.

`decide` is pure: the same objects, command, stamp and rules give the same result. It never changes
its input trees; the trees of its drafts belong to the drafts.
"""

from typing import assert_never

from app.domain.log import Stamp
from app.domain.objects.access import escalation
from app.domain.objects.kinds import limit_ranges
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write import (
    apply,
    binding,
    creation,
    deletion,
    patching,
    recording,
    updating,
)
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    ImportObject,
    PatchObject,
    PatchType,
    RecordDecision,
    RecordFact,
    ReplayEvent,
    UpdateObject,
)
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.replaying import deciding as replaying

__all__ = ["Decided", "Rules", "decide"]


def decide(reader: ObjectsReader, command: Command, stamp: Stamp, rules: Rules) -> Decided:
    """Returns the effect of the command on the objects of `reader`. Raises Rejected."""
    decided = _decide(reader, command, stamp, rules)
    if isinstance(command, CreateObject | UpdateObject | PatchObject):
        rights = command.options.rights
        if isinstance(rights, escalation.GiverRights) and decided.tree is not None:
            escalation.check(reader, command.key, decided.tree, rights)
    if isinstance(command, UpdateObject | PatchObject) and decided.tree is not None:
        limit_ranges.check_change(reader, command.key, command.subresource, decided.tree)
    return decided


def _decide(reader: ObjectsReader, command: Command, stamp: Stamp, rules: Rules) -> Decided:
    match command:
        case CreateObject():
            return creation.decide_create(reader, command, stamp, rules)
        case UpdateObject():
            return updating.decide_update(reader, command, stamp, rules)
        case PatchObject():
            if command.type is PatchType.APPLY:
                return apply.decide_apply(reader, command, stamp, rules)
            return patching.decide_patch(reader, command, stamp, rules)
        case DeleteObject():
            return deletion.decide_delete(reader, command, stamp, rules)
        case BindPod():
            return binding.decide_binding(reader, command, stamp, rules)
        case RecordDecision():
            return recording.decide_decision(command, stamp)
        case RecordFact():
            return recording.decide_fact(command, stamp)
        case ImportObject():
            return recording.decide_import(reader, command, stamp)
        case ReplayEvent():
            return replaying.decide_replay(reader, command, stamp, rules)
        case _:
            assert_never(command)

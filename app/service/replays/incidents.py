"""The run of an incident's steps on a cluster in memory, with all controllers in virtual time."""

from app.analysis import edits
from app.analysis.edits import Edit
from app.analysis.incidents.facts import Played
from app.analysis.incidents.incident import Incident, IncidentStep, IncidentVariant
from app.domain.errors import InputError, Rejected
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import Command, CreateObject, DeleteObject, PatchObject
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.reconciling import ReplayTimeline

ACTOR = Actor(user="redra:incidents", groups=("system:masters",), agent="redra-incidents")
MANAGER = "redra-incidents"
NAMESPACE = "default"


def play(incident: Incident, variant: IncidentVariant, line: ReplayTimeline) -> Played:
    """The history of a variant. Raises InputError for an invalid step.

    A refusal by the API is part of the history: later steps are still run.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    key = ObjectKey("", "namespaces", "", NAMESPACE)
    line.submit(CreateObject(key=key, version="v1", tree=namespace), actor=ACTOR)
    line.settle()
    refusals: list[str] = []
    for number, step in enumerate(incident.steps_of(variant)):
        try:
            _step(step, line, refusals)
        except InputError as problem:
            raise InputError(str(problem), place=f"steps[{number}]") from problem
        line.settle()
    return Played(objects=line.views.objects, events=line.events, refusals=refusals)


def _step(step: IncidentStep, line: ReplayTimeline, refusals: list[str]) -> None:
    if step.wait:
        line.advance(Instant(line.now + int(step.wait * SECOND)))
        return
    for edit in _edits(step):
        (command,) = edits.commands_of(
            (edit,), line.views.objects, line.rules.profile, manager=MANAGER
        )
        try:
            line.submit(_with_options(command, step), actor=ACTOR)
        except Rejected as refusal:
            refusals.append(str(refusal))
        if step.repeat == 1:
            line.settle()


def _edits(step: IncidentStep) -> list[Edit]:
    if step.delete:
        return [edits.DeleteEdit(name=step.delete)]
    if step.patch is not None:
        return [edits.PatchEdit(name=step.of, body=step.patch)]
    if step.status is not None:
        return [edits.PatchEdit(name=step.of, body={"status": step.status})]
    return [edits.Apply(tree=tree) for tree in step.trees()]


def _with_options(command: Command, step: IncidentStep) -> Command:
    """The command with what an edit cannot express: its subresource, its grace period."""
    if step.status is not None and isinstance(command, PatchObject):
        return PatchObject(
            key=command.key,
            version=command.version,
            type=command.type,
            body=command.body,
            subresource="status",
            options=command.options,
        )
    if step.now and isinstance(command, DeleteObject):
        return DeleteObject(key=command.key, version=command.version, grace_seconds=0)
    return command

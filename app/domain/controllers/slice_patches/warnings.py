"""Warning Events for patches with a selector that fails on a device, which the patch then skips.
Parity: objects.md 9, merging rule 1.

There is one warning per patch and problem, with the number of devices and one example. The warnings
are folded from the recorded decisions, so that a restart repeats none.
"""

from app.domain.controllers.event_objects import Reporter, reference
from app.domain.controllers.plan import DECISIONS, Decision, DeviceViews, Plan, Reads, Views
from app.domain.controllers.work_queue import AnyQueue
from app.domain.devices.model import PatchProblem
from app.domain.log import DECISION, Event, EventType, ObjectKey, Revision
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import decision_body
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant

NAME = "slice-patches"
REASON = "SelectorFailed"
VERSION = f"{api_groups.RESOURCE}/v1alpha3"

_LOOKED_AT = frozenset({"resourceslices", "resourceslicepatches", "deviceclasses"})
_Told = tuple[str, str]
"""The uid of the patch and the problem."""


class PatchWarningReconciler:
    """Reports each problem of each patch once."""

    name = NAME
    reads: Reads = frozenset(
        {
            *((api_groups.RESOURCE, resource) for resource in _LOOKED_AT),
            api_resources.EVENTS,
            DECISIONS,
        }
    )

    def __init__(self) -> None:
        self._reporter = Reporter(NAME)
        self._told: set[_Told] = set()
        self._has_patches = False
        self._changed_at = Revision(0)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """Empty: all problems are checked after each change."""
        return ()

    def fold(self, event: Event, views: Views) -> None:
        """Triggers a check after every change of slices, patches and classes."""
        key = event.key
        if event.type is EventType.DECISION_RECORDED:
            if key.resource == DECISION.resource and event.object.get("controller") == NAME:
                inputs = decision_body.read(event.object).inputs
                self._told.add((inputs.uid, inputs.problem))
        elif key.group == api_groups.RESOURCE and key.resource in _LOOKED_AT:
            self._has_patches = self._has_patches or key.resource == "resourceslicepatches"
            self._changed_at = event.revision
        else:
            self._reporter.fold(event)

    def step(self, views: DeviceViews, now: Instant) -> Plan | None:
        """Writes the warning for one problem."""
        if not self._changed_at or not self._has_patches:
            return None
        for patch, uid, problem, devices in _problems(views):
            if (uid, problem) not in self._told:
                return self._plan(views, patch, uid, problem, devices, now)
        self._changed_at = Revision(0)
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Leaves a refused warning until the next change."""
        if problem is not None:
            self._changed_at = Revision(0)

    def due(self) -> Instant | None:
        """Always None: no work waits for an instant."""
        return None

    def redecide(self, views: DeviceViews, decision: Event) -> Plan | None:
        """Makes the warning again from the observed devices."""
        inputs = decision_body.read(decision.object).inputs
        wanted = (inputs.uid, inputs.problem)
        now = Instant(inputs.now or decision.stamp.time)
        for patch, uid, problem, devices in _problems(views):
            if (uid, problem) == wanted:
                self._changed_at = Revision(decision.stamp.cause)
                return self._plan(views, patch, uid, problem, devices, now)
        return None

    def _plan(
        self,
        views: DeviceViews,
        patch: str,
        uid: Uid,
        problem: str,
        devices: list[PatchProblem],
        now: Instant,
    ) -> Plan:
        tree = views.objects.get(_key(patch)) or {}
        example = "/".join(devices[0].device)
        more = f" and {len(devices) - 1} more" if len(devices) > 1 else ""
        message = f"not applied to device {example}{more}: {problem}"
        subject = reference(tree, kind="ResourceSlicePatch", api_version=VERSION)
        report = self._reporter.report(
            views.objects, now, subject, kind="Warning", reason=REASON, message=message
        )
        return Plan(
            controller=NAME,
            key=patch,
            commands=(report,),
            decision=Decision(
                controller=NAME,
                resource="resourceslicepatches",
                namespace="",
                name=patch,
                outcome=REASON,
                inputs={"now": now, "uid": uid, "problem": problem},
                summary={"devices": len(devices), "example": example, "problem": problem},
            ),
            cause=self._changed_at,
            observed=views.objects.revision,
        )


def _key(patch: str) -> ObjectKey:
    return ObjectKey(api_groups.RESOURCE, "resourceslicepatches", "", patch)


def _problems(views: DeviceViews) -> list[tuple[str, Uid, str, list[PatchProblem]]]:
    """The patch, its uid, the problem and the affected devices; sorted by patch and problem."""
    groups: dict[tuple[str, str], list[PatchProblem]] = {}
    for patch_problem in views.inventory.patch_problems():
        groups.setdefault((patch_problem.patch, patch_problem.problem), []).append(patch_problem)
    warnings_due: list[tuple[str, Uid, str, list[PatchProblem]]] = []
    for (patch, problem), devices in sorted(groups.items()):
        event = views.objects.event(_key(patch))
        if event is not None:
            warnings_due.append(
                (patch, event.uid, problem, sorted(devices, key=lambda one: one.device))
            )
    return warnings_due

"""The queue that all workloads share: which workload to process after which event.

An event on a workload or on an object that it controls queues the workload; its rules compute the
next steps from the objects alone. A refused step is reported and retried pod by pod, with a growing
delay, as in upstream's work queue.
"""

from collections.abc import Iterable

from app.domain.controllers.event_objects import Reporter, reference, without_refused
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Plan, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.workloads.answer import Report, Situation, Step, Workload
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rejections import MODIFIED
from app.domain.objects.write.commands import Command
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

PODS_MAX = 100
"""The most pods that one step creates or deletes; the workload is processed again afterwards."""


class WorkloadReconciler(KeyedController[ObjectKey, Views]):
    """Runs the rules of one kind of workload."""

    def __init__(self, workload: Workload, pace: Pace | None = None) -> None:
        self.name = workload.name
        nodes = {api_resources.NODES} if workload.watches_nodes else set()
        self.reads = frozenset({workload.place, *workload.dependents, *nodes, api_resources.EVENTS})
        super().__init__(pace=pace)
        self._workload = workload
        self._reporter = Reporter(workload.component)
        self._problems: dict[ObjectKey, str] = {}
        self._careful: set[ObjectKey] = set()
        self._reporting: ObjectKey | None = None

    def keys_of(self, event: Event, views: Views) -> Iterable[ObjectKey]:
        """The workload that the event is about, or the one that controls its object."""
        key = event.key
        workload = self._workload
        place = (key.group, key.resource)
        if place == workload.place:
            if event.type is EventType.OBJECT_DELETED:
                self._problems.pop(key, None)
                self._careful.discard(key)
                self.queue.forget(key)
                return ()
            return (key,)
        if place in workload.dependents:
            return self._keys_of_dependent(event, views.objects)
        if workload.watches_nodes and place == api_resources.NODES:
            return views.objects.keys(*workload.place)
        self._reporter.fold(event)
        return ()

    def reconcile(self, views: Views, key: ObjectKey, now: Instant) -> Work | None:
        """Makes the next step of one workload."""
        return Work(self._commands(views.objects, key, now))

    def settle(self, key: ObjectKey, plan: Plan, problem: str | None, now: Instant) -> None:
        """After a refusal reports it once and retries later, one pod at a time."""
        was_report, self._reporting = self._reporting == key, None
        if problem is None:
            if was_report:
                self.queue.retry(key, now)
            else:
                self._careful.discard(key)
                self.queue.forget(key)
        elif was_report or MODIFIED in problem:
            self.queue.retry(key, now)
        elif len(plan.commands) > 1 and key not in self._careful:
            # A single pod may be the cause: the others are still created.
            self._careful.add(key)
            self.queue.add_first(key, plan.observed)
        else:
            self._careful.add(key)
            self._problems[key] = problem
            self.queue.add_first(key, plan.observed)

    def _keys_of_dependent(self, event: Event, objects: ObjectsReader) -> Iterable[ObjectKey]:
        owner = meta.controller(event.object)
        workload = self._workload
        if owner is None and workload.release is not None:
            # The object is an orphan of a deleted workload.
            if event.type is not EventType.OBJECT_DELETED and workload.release(event.object):
                return (event.key,)
            return ()
        if owner is None or (owner.kind, owner.api_version) != (
            workload.kind,
            workload.api_version,
        ):
            return ()
        key = objects.by_uid(owner.uid)
        if key is not None:
            return (key,)
        if workload.release is not None and event.type is not EventType.OBJECT_DELETED:
            return (event.key,)
        return ()

    def _commands(
        self, objects: ObjectsReader, key: ObjectKey, now: Instant
    ) -> tuple[Command, ...]:
        workload = self._workload
        tree = objects.get(key)
        if tree is None:
            return ()
        if not is_of(key, workload.place):
            freed = workload.release(tree) if workload.release is not None else None
            return () if freed is None else (freed,)
        situation = Situation(
            objects=objects,
            key=key,
            tree=tree,
            now=now,
            pods_max=1 if key in self._careful else PODS_MAX,
            is_careful=key in self._careful,
        )
        problem = self._problems.pop(key, None)
        if problem is not None:
            self._reporting = key
            report = Report(
                kind="Warning", reason="FailedCreate", message=f"Error creating: {problem}"
            )
            failure = () if workload.failed is None else workload.failed(situation, problem)
            return self._with_events(objects, tree, (report, *failure), now)
        answer = workload.sync(situation)
        if answer.due is not None:
            self.queue.add_at(key, answer.due, objects.revision)
        return without_refused(objects, self._with_events(objects, tree, answer.steps, now))

    def _with_events(
        self, objects: ObjectsReader, tree: JsonObject, steps: tuple[Step, ...], now: Instant
    ) -> tuple[Command, ...]:
        """The steps with reports turned into Event objects of different names."""
        commands: list[Command] = []
        keys: set[ObjectKey] = set()
        for step in steps:
            if not isinstance(step, Report):
                commands.append(step)
                continue
            report = self._reporter.report(
                objects,
                now,
                self._subject(tree),
                kind=step.kind,
                reason=step.reason,
                message=step.message,
                names=frozenset(keys),
            )
            keys.add(report.key)
            commands.append(report)
        return tuple(commands)

    def _subject(self, tree: JsonView) -> JsonObject:
        workload = self._workload
        return reference(
            tree, kind=workload.kind, api_version=workload.api_version, with_revision=True
        )

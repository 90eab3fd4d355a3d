"""The reconciler of disruption budgets: keeps their status in line with their pods.

The facts about protected pods are kept with each budget, so an event on a pod only costs a check of
the budgets of its namespace. As upstream, changes of scale do not queue a budget: the creation and
deletion of pods does. A pod that has the disruption condition and still exists after two minutes
loses it.
"""

from collections.abc import Iterable, Iterator

from app.domain.controllers import conditions
from app.domain.controllers.disruption import counting
from app.domain.controllers.disruption.counting import Count, Protected
from app.domain.controllers.disruption.scale import ScaleUnknown
from app.domain.controllers.event_objects import MANAGER, Reporter, reference, without_refused
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.controllers.resources import is_of, pod_key
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, PatchObject, PatchType, UpdateObject
from app.domain.values import api_resources, json_tree, selectors, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import LabelSelector
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NAME = "disruption"
COMPONENT = "controllermanager"
"""The name under which upstream's disruption controller reports."""

STALE_AFTER = 120 * SECOND
"""The time for which a pod may have the disruption condition without being deleted."""

BY_KUBELET = "TerminationByKubelet"
"""The reason of a disruption that has no time limit."""

_Key = tuple[str, ...]


class _Budget:
    """One budget: its selector, and the facts about its pods by name."""

    __slots__ = ("pods", "selector")

    def __init__(self, selector: LabelSelector | None) -> None:
        self.selector = selector
        self.pods: dict[str, Protected] = {}

    def take_in(self, pod: JsonView, labels: dict[str, str], *, is_gone: bool) -> bool:
        """Updates the facts about a pod; true when it is or was protected."""
        name = meta.name(pod)
        before = self.pods.pop(name, None)
        if is_gone or self.selector is None or not self.selector.matches(labels):
            return before is not None
        self.pods[name] = counting.protected(pod)
        return True


class DisruptionReconciler(KeyedController[_Key, Views]):
    """Counts the pods of budgets, and reports on announced disruptions."""

    name = NAME
    reads: Reads = frozenset(
        {api_resources.PODS, api_resources.POD_DISRUPTION_BUDGETS, api_resources.EVENTS}
    )

    def __init__(self) -> None:
        super().__init__()
        self._budgets: dict[str, dict[str, _Budget]] = {}
        self._reporter = Reporter(COMPONENT)

    def keys_of(self, event: Event, views: Views) -> Iterable[_Key]:
        """The budgets that protect the pod of the event, or the budget itself."""
        if is_of(event.key, api_resources.PODS):
            return self._fold_pod(event)
        if is_of(event.key, api_resources.POD_DISRUPTION_BUDGETS):
            return self._fold_budget(event, views.objects)
        self._reporter.fold(event)
        return ()

    def reconcile(self, views: Views, key: _Key, now: Instant) -> Work | None:
        """Writes the status of a budget, or the condition of a stale pod, when it must change."""
        act = self._recover if key[0] == api_resources.PODS[1] else self._count
        return Work(without_refused(views.objects, act(views.objects, key, now)))

    def _fold_pod(self, event: Event) -> Iterator[_Key]:
        pod = event.object
        is_gone = event.type is EventType.OBJECT_DELETED
        if not is_gone and (until := _stale_at(pod)) is not None:
            place = (api_resources.PODS[1], event.key.namespace, event.key.name)
            self.queue.add_at(place, until, event.revision)
        budgets = self._budgets.get(event.key.namespace)
        if not budgets:
            return
        labels = meta.labels(pod)
        for name, budget in budgets.items():
            if budget.take_in(pod, labels, is_gone=is_gone):
                yield (api_resources.POD_DISRUPTION_BUDGETS[1], event.key.namespace, name)

    def _fold_budget(self, event: Event, objects: ObjectsReader) -> Iterator[_Key]:
        namespace, name = event.key.namespace, event.key.name
        held = self._budgets.setdefault(namespace, {})
        if event.type is EventType.OBJECT_DELETED:
            held.pop(name, None)
            if not held:
                del self._budgets[namespace]
            return
        selector = disruption_budgets.selector_of(event.object)
        known = held.get(name)
        if known is None or known.selector != selector:
            budget = held[name] = _Budget(selector)
            if selector is not None:
                for key in objects.keys(*api_resources.PODS, namespace):
                    pod = objects.get(key)
                    if pod is not None:
                        labels = meta.labels(pod)
                        budget.take_in(pod, labels, is_gone=False)
        yield (api_resources.POD_DISRUPTION_BUDGETS[1], namespace, name)

    def _count(self, objects: ObjectsReader, key: _Key, now: Instant) -> tuple[Command, ...]:
        _, namespace, name = key
        place = ObjectKey(*api_resources.POD_DISRUPTION_BUDGETS, namespace, name)
        tree = objects.get(place)
        budget = self._budgets.get(namespace, {}).get(name)
        if tree is None or budget is None:
            return ()
        commands: list[Command] = []
        if not budget.pods:
            commands.append(self._say(objects, now, tree, "NoPods", "No matching pods found"))
        pods = [budget.pods[pod] for pod in sorted(budget.pods)]
        try:
            counted = counting.count(objects, tree, pods, now)
        except ScaleUnknown as problem:
            text = f"Failed to calculate the number of expected pods: {problem}"
            report = self._say(
                objects, now, tree, "CalculateExpectedPodCountFailed", text, kind="Warning"
            )
            commands.append(report)
            counted = Count(status=counting.failed(tree, str(problem), now))
        if counted.some_unmanaged:
            text = _UNMANAGED.format(selectors.label_selector_text(core.selector(tree)))
            commands.append(self._say(objects, now, tree, "UnmanagedPods", text, kind="Warning"))
        for pod in counted.late:
            commands += self._say_late(objects, now, namespace, pod, name)
        if counted.due is not None:
            self.queue.add_at(key, counted.due, objects.revision)
        if counted.status != meta.status(tree):
            commands.append(
                UpdateObject(
                    key=place,
                    version="v1",
                    tree={**tree, "status": counted.status},
                    subresource="status",
                    options=MANAGER,
                )
            )
        return tuple(commands)

    def _say(
        self,
        objects: ObjectsReader,
        now: Instant,
        budget: JsonView,
        reason: str,
        message: str,
        *,
        kind: str = "Normal",
    ) -> Command:
        subject = reference(
            budget, kind="PodDisruptionBudget", api_version="policy/v1", with_revision=True
        )
        return self._reporter.report(
            objects, now, subject, kind=kind, reason=reason, message=message
        )

    def _say_late(
        self, objects: ObjectsReader, now: Instant, namespace: str, name: str, budget: str
    ) -> list[Command]:
        pod = objects.get(pod_key(namespace, name))
        if pod is None:
            return []
        report = self._reporter.report(
            objects,
            now,
            reference(pod, kind="Pod", with_revision=True),
            kind="Warning",
            reason="NotDeleted",
            message=f"Pod was expected by PDB {namespace}/{budget} to be deleted but it wasn't",
        )
        return [report]

    def _recover(self, objects: ObjectsReader, key: _Key, now: Instant) -> tuple[Command, ...]:
        """Sets the disruption condition of a pod that still exists to false."""
        place = pod_key(key[1], key[2])
        pod = objects.get(place)
        until = None if pod is None else _stale_at(pod)
        if pod is None or until is None:
            return ()
        if until > now:
            self.queue.add_at(key, until, objects.revision)
            return ()
        metadata = pod["metadata"]
        condition: JsonObject = {
            "type": conditions.DISRUPTION,
            "status": "False",
            "reason": None,
            "message": None,
            "lastProbeTime": None,
            "lastTransitionTime": timestamps.seconds_text(now),
        }
        if generation := metadata.get("generation"):
            condition["observedGeneration"] = generation
        body = {
            "metadata": meta.same_object(pod),
            "status": conditions.patch_of(pod, condition),
        }
        patch = PatchObject(
            key=place,
            version="v1",
            type=PatchType.STRATEGIC,
            body=body,
            subresource="status",
            options=MANAGER,
        )
        return (patch,)


_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a "
    "result, the status of the PDB cannot be calculated correctly, which may result in undefined "
    'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
    "integer value."
)


def _stale_at(pod: JsonView) -> Instant | None:
    """The instant at which the pod's disruption condition is stale; None without the condition."""
    pod_conditions = json_tree.get(pod, "status", "conditions")
    for condition in pod_conditions if isinstance(pod_conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == conditions.DISRUPTION:
            break
    else:
        return None
    if condition.get("status") != "True" or condition.get("reason") == BY_KUBELET:
        return None
    if disruption_budgets.is_leaving(pod) or core.is_finished(pod):
        return None
    try:
        since = timestamps.parse(json_tree.text(condition, "lastTransitionTime"))
    except TimestampError:
        since = Instant(0)
    return Instant(since + STALE_AFTER)

"""The status of one budget, from the pods that it protects.

Parity: controllers.md 5.5, upstream's `trySync`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.controllers.disruption import scale
from app.domain.objects.kinds import disruption_budgets
from app.domain.objects.reader import ObjectsReader
from app.domain.values import decimals, json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.fields.meta import Owner
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

DELETION_TIMEOUT = 120 * SECOND
"""The time for which a pod whose eviction was allowed counts as gone while it still exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """The facts about one protected pod. `owner` is its controller reference, if any."""

    name: str
    owner: Owner | None
    is_ready: bool
    is_leaving: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The new status of a budget, and the facts to report about it.

    `late` are pods that should have been evicted and still exist. `due` is the instant at which the
    next pod will be late. `some_unmanaged` is true when pods without a controller are left out of
    an expected scale.
    """

    status: JsonObject
    late: tuple[str, ...] = ()
    due: Instant | None = None
    some_unmanaged: bool = False


def protected(pod: JsonView) -> Protected:
    """The facts about a pod that the count uses."""
    return Protected(
        name=meta.name(pod),
        owner=meta.controller(pod),
        is_ready=disruption_budgets.is_ready(pod),
        is_leaving=disruption_budgets.is_leaving(pod),
    )


def count(
    objects: ObjectsReader, budget: JsonView, pods: Sequence[Protected], now: Instant
) -> Count:
    """The expected status, equal to the current one when that is right. Raises ScaleUnknown."""
    total, wanted, some_unmanaged = _wanted(objects, budget, pods)
    disrupted, late, due = _announced(budget, pods, now)
    healthy = sum(
        1 for pod in pods if pod.is_ready and not pod.is_leaving and pod.name not in disrupted
    )
    allowed = max(0, healthy - wanted) if total > 0 else 0
    before = meta.status(budget)
    generation = meta.generation(budget) or 0
    status: JsonObject = {
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "disruptionsAllowed": allowed,
        "expectedPods": total,
        **({"observedGeneration": generation} if generation else {}),
        **({"disruptedPods": disrupted} if disrupted else {}),
        **({"conditions": before["conditions"]} if before.get("conditions") else {}),
    }
    same = status | ({} if disrupted else {"disruptedPods": before.get("disruptedPods") or {}})
    is_right = disruption_budgets.agrees(status) and same == {"disruptedPods": {}} | dict(before)
    return Count(
        status=dict(before) if is_right else disruption_budgets.with_own_condition(status, now),
        late=late,
        due=due,
        some_unmanaged=some_unmanaged,
    )


def failed(budget: JsonView, problem: str, now: Instant) -> JsonObject:
    """The status that allows no disruptions because the pods could not be counted."""
    before = meta.status(budget)
    return disruption_budgets.with_condition(
        {**before, "disruptionsAllowed": 0},
        now,
        state="False",
        reason=disruption_budgets.SYNC_FAILED,
        message=problem,
        generation=meta.generation(budget) or 0,
    )


def _wanted(
    objects: ObjectsReader, budget: JsonView, pods: Sequence[Protected]
) -> tuple[int, int, bool]:
    """The expected number of pods, the required number of healthy pods, and if some have no owner.

    A `minAvailable` that is a number needs no owners: the expected number is the current one.
    """
    spec = meta.spec(budget)
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is None and least is None:
        return 0, 0, False
    if most is None and isinstance(least, int):
        return len(pods), least, False
    namespace = meta.namespace(budget)
    owners = ((pod.name, pod.owner) for pod in pods)
    total, some_unmanaged = scale.expected(objects, namespace, owners)
    if most is not None:
        return total, max(0, total - decimals.share(most, total)), some_unmanaged
    return total, decimals.share(least, total), some_unmanaged


def _announced(
    budget: JsonView, pods: Sequence[Protected], now: Instant
) -> tuple[Mapping[str, str], tuple[str, ...], Instant | None]:
    """The pending disruptions, the pods for which they did not happen, and the next check."""
    known = json_tree.mapping(budget, "status", "disruptedPods")
    if not known:
        return {}, (), None
    coming: dict[str, str] = {}
    late: list[str] = []
    ends: list[Instant] = []
    for pod in pods:
        if pod.is_leaving or pod.name not in known:
            continue
        end = _time(known[pod.name]) + DELETION_TIMEOUT
        if end < now:
            late.append(pod.name)
        else:
            coming[pod.name] = known[pod.name]
            ends.append(Instant(end + 1))
    return coming, tuple(late), min(ends, default=None)


def _time(text: object) -> int:
    try:
        return timestamps.parse(str(text))
    except TimestampError:
        return 0

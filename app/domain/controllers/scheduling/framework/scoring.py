"""Scores of the framework and the choice among the best. Parity: controllers.md 3.6 and 4.5.

All numbers are integers, as upstream's. A node's total is the sum of weight times normalised score.
This module has the scores that depend on the pod and the node alone. The scores that depend on
other pods or nodes too are `pod_topology_spread`, `inter_pod_affinity_score` and `image_locality`.
"""

import hashlib
from collections.abc import Sequence

from app.domain.controllers.scheduling.framework.amounts import CPU, MEMORY
from app.domain.controllers.scheduling.framework.filters import is_tolerated
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec

SCORE_MAX = 100

TAINT_WEIGHT = 3
AFFINITY_WEIGHT = 2
DEVICES_WEIGHT = 2
SPREAD_WEIGHT = 2
ATTRACTION_WEIGHT = 2
IMAGES_WEIGHT = 1


def room_score(pod: PodSpec, info: NodeInfo, *, leaves: bool = False) -> int:
    """NodeResourcesFit (LeastAllocated) plus NodeResourcesBalancedAllocation, weight 1 each.

    With `leaves` the balance that the pod would leave counts, as before 1.36 (r5), otherwise the
    change of the balance by the pod.
    """
    return _least_allocated(pod, info) + _balanced(pod, info, leaves=leaves)


def soft_taints(pod: PodSpec, info: NodeInfo) -> int:
    """The number of PreferNoSchedule taints that the pod does not tolerate."""
    if not info.taints:
        return 0
    return sum(
        taint.get("effect") == "PreferNoSchedule" and not is_tolerated(pod, taint)
        for taint in info.taints
    )


def preference(pod: PodSpec, info: NodeInfo) -> int:
    """The sum of the weights of preferred node affinity terms that the node meets."""
    if not pod.preferences:
        return 0
    return sum(
        term.weight for term in pod.preferences if term.selector.matches(info.name, info.labels)
    )


def totals(
    room: Sequence[int], taints: Sequence[int], preferences: Sequence[int], devices: Sequence[int]
) -> list[int]:
    """The nodes' totals from their raw scores, all in the order of the feasible nodes."""
    sums = list(room)
    if any(taints):
        worst = max(taints)
        for place, count in enumerate(taints):
            sums[place] += TAINT_WEIGHT * (SCORE_MAX - SCORE_MAX * count // worst)
    _add_normalised(sums, preferences, AFFINITY_WEIGHT)
    _add_normalised(sums, devices, DEVICES_WEIGHT)
    return sums


def add(totals: list[int], scores: Sequence[int], weight: int) -> None:
    """Adds the weighted normalised scores of a plug-in to `totals`, in place."""
    for place, score in enumerate(scores):
        totals[place] += weight * score


def winner(scores: Sequence[int]) -> int:
    """The position of the root of upstream's heap over the totals (C17).

    The heap is built bottom-up. A child replaces its parent only when it is strictly greater; the
    right child is preferred over the left only when it is strictly greater. Example: [50, 50, 100,
    100] gives 3, because the sift at 1 lifts it there first, and the root prefers the left of two
    equal children.
    """
    best = list(range(len(scores)))
    for place in range(len(best) // 2 - 1, -1, -1):
        # Only the roots of subtrees matter; nothing below them is read again.
        child = best[2 * place + 1]
        right = 2 * place + 2
        if right < len(best) and scores[best[right]] > scores[child]:
            child = best[right]
        if scores[child] > scores[place]:
            best[place] = child
    return best[0]


def _add_normalised(totals: list[int], raw: Sequence[int], weight: int) -> None:
    best = max(raw, default=0)
    if best <= 0:
        return
    for place, score in enumerate(raw):
        totals[place] += weight * (SCORE_MAX * score // best)


def _least_allocated(pod: PodSpec, info: NodeInfo) -> int:
    amounts, room = pod.amounts, info.room
    total = weights = 0
    if cpu := room.get(CPU, 0):
        weights += 1
        wanted = info.scored_cpu + amounts.scored_cpu
        if wanted <= cpu:
            total += (cpu - wanted) * SCORE_MAX // cpu
    if memory := room.get(MEMORY, 0):
        weights += 1
        wanted = info.scored_memory + amounts.scored_memory
        if wanted <= memory:
            total += (memory - wanted) * SCORE_MAX // memory
    return total // weights if weights else 0


def _balanced(pod: PodSpec, info: NodeInfo, *, leaves: bool) -> int:
    # Parity: controllers.md 4.5; this plug-in does not score pods without CPU and memory requests.
    requests = pod.amounts.requests
    cpu, memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
    if not cpu and not memory:
        return 0
    room, requested = info.room, info.requested
    cpu_room, memory_room = room.get(CPU, 0), room.get(MEMORY, 0)
    cpu_used, memory_used = requested.get(CPU, 0), requested.get(MEMORY, 0)
    after = _balance(cpu_used + cpu, cpu_room, memory_used + memory, memory_room)
    if leaves:
        return after
    before = _balance(cpu_used, cpu_room, memory_used, memory_room)
    # Recorded: 1.36. The score is the change of the node's balance by the pod, not the balance
    # that the pod leaves: 0..100 around 75, halved towards zero as upstream's integers are.
    half = SCORE_MAX // 2
    return half + int((half + after - before) / 2)


def _balance(cpu: int, cpu_room: int, memory: int, memory_room: int) -> int:
    """100 when equal shares of the node's CPU and memory are requested, less when they differ."""
    if not cpu_room or not memory_room:
        return SCORE_MAX
    spread = abs(min(cpu / cpu_room, 1.0) - min(memory / memory_room, 1.0)) / 2
    return int((1 - spread) * SCORE_MAX)


def drawn_winner(pod_uid: str, names: Sequence[str], _first: str) -> str:
    """Chooses one of equally good nodes by the pod's uid, in place of upstream's heap order.

    Equal arguments give the same name; each name has the same probability. Parity: controllers.md
    4.5 and C17. Later releases are to draw at random; the uid is in the log, so that this choice
    can be repeated.
    """
    digest = hashlib.sha256(pod_uid.encode()).digest()
    return names[int.from_bytes(digest[:8]) % len(names)]

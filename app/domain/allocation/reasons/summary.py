"""The summary of the reasons of many nodes in few bytes, for the log.

Equal causes are counted; examples are cut first. The causes of a node are counted with masks where
the compiled problem contains the answer, and otherwise with the functions of the explanation; both
give the same first cause for every device. The causes of a node contain no names of claims, so that
they can be cached while the node does not change. Counts stay exact when examples or rare causes
are cut.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.allocation import eligibility
from app.domain.allocation.eligibility import Exclusion
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.causes import SUITABLE, CauseKind
from app.domain.allocation.usage import Usage
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject

EXAMPLES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryBounds:
    """The bounds of a summary: its size, and the number of nodes it covers; see the settings."""

    bytes_max: int = 4_096
    nodes_max: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The number of devices of a node with one cause for one request, and the first as example."""

    claim: int
    request: str
    kind: str
    about: str
    devices: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCauses:
    """The counted causes of one node for all requests, and whether a request alone is short.

    `may_be_kept` is false when querying other nodes first could change the counts (quirks q3, q12).
    """

    counted: tuple[Counted, ...]
    pools: tuple[str, ...]
    is_short: bool
    may_be_kept: bool


def causes_of(problem: Problem) -> NodeCauses:
    """The first cause of every device of the node for every request, counted."""
    counted: list[Counted] = []
    is_short = False
    for number, rows in enumerate(problem.rows):
        for alternatives in rows:
            enough = False
            for row in alternatives:
                masks = _count(problem, row)
                counted += [
                    Counted(
                        claim=number,
                        request=row.request.result_name,
                        kind=kind,
                        about=about,
                        devices=mask.bit_count(),
                        example=_first_name(problem, mask),
                    )
                    for (kind, about), mask in masks.items()
                ]
                suitable = masks.get((SUITABLE, ""), 0)
                enough = enough or _is_enough(row, suitable)
            is_short = is_short or not enough
    return NodeCauses(
        counted=tuple(counted),
        pools=tuple(
            f"{pool.state.value}: {pool.problem}" for pool in problem.view.pools if not pool.usable
        ),
        is_short=is_short,
        may_be_kept=problem.plain_counters,
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _NodeTally:
    """The count of one cause over all nodes."""

    nodes: int = 0
    devices: int = 0
    examples: list[str] = field(default_factory=list)


_Key = tuple[int, str, str, str]


class CauseSummary:
    """Adds up the causes of nodes; `left_out` nodes were skipped because of the bound."""

    def __init__(self) -> None:
        self.left_out = 0
        self._nodes = 0
        self._together = 0
        self._tallies: dict[_Key, _NodeTally] = {}
        self._pools: dict[str, int] = {}

    def add(self, node: str, node_causes: NodeCauses) -> None:
        """Adds the causes of one node."""
        self._nodes += 1
        self._together += not node_causes.is_short
        for pool in node_causes.pools:
            self._pools[pool] = self._pools.get(pool, 0) + 1
        tallies = self._tallies
        for one in node_causes.counted:
            key = (one.claim, one.request, one.kind, one.about)
            tally = tallies.get(key)
            if tally is None:
                tally = tallies[key] = _NodeTally()
            tally.nodes += 1
            tally.devices += one.devices
            if len(tally.examples) < EXAMPLES_MAX:
                tally.examples.append(f"{node}: {one.example}")

    def write(self, into: JsonObject, claims: Sequence[str], bytes_max: int) -> None:
        """Writes the causes into a summary of at most `bytes_max` bytes of JSON.

        `causes` are ordered by their number of devices; `causesCut` and `causesDevicesCut` count
        the causes that did not fit and their devices. `causesNodes` counts the nodes included,
        `causesNodesCut` the nodes left out, `together` the nodes on which each request alone could
        be satisfied.
        """
        if not self._nodes:
            return
        into["causesNodes"] = self._nodes
        if self.left_out:
            into["causesNodesCut"] = self.left_out
        if self._together:
            into["together"] = self._together
        if self._pools:
            most = sorted(self._pools.items(), key=lambda item: (-item[1], item[0]))
            into["pools"] = [{"problem": text, "count": count} for text, count in most[:4]]
        ordered = sorted(self._tallies.items(), key=lambda item: (-item[1].devices, item[0]))
        _fit(into, [(key, tally) for key, tally in ordered], claims, bytes_max)


def _fit(
    into: JsonObject,
    ordered: Sequence[tuple[_Key, _NodeTally]],
    claims: Sequence[str],
    bytes_max: int,
) -> None:
    """Writes as many examples, then as many causes, as the bound allows."""
    trees: list[JsonObject] = []
    for examples in (EXAMPLES_MAX, 1, 0):
        trees = [_tree(key, tally, claims, examples) for key, tally in ordered]
        into["causes"] = trees
        if _size(into) <= bytes_max:
            return
    kept = len(trees)
    while kept and _size(into) > bytes_max:
        kept //= 2
        into["causes"] = trees[:kept]
        into["causesCut"] = len(trees) - kept
        into["causesDevicesCut"] = sum(tally.devices for _, tally in ordered[kept:])


def _tree(key: _Key, tally: _NodeTally, claims: Sequence[str], examples: int) -> JsonObject:
    claim, request, kind, about = key
    tree: JsonObject = {
        "claim": claims[claim],
        "request": request,
        "cause": kind,
        "nodes": tally.nodes,
        "devices": tally.devices,
    }
    if about:
        tree["about"] = about
    if examples:
        tree["examples"] = tally.examples[:examples]
    return tree


def _size(tree: JsonObject) -> int:
    return len(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode())


_Masks = dict[tuple[str, str], int]
"""The devices with each cause, as bits, by kind and subject of the cause."""


def _count(problem: Problem, row: RequestRow) -> _Masks:
    """The devices by first cause, in the order of `causes.of`."""
    masks: _Masks = {}
    left = (1 << len(problem.view.devices)) - 1
    for key, mask in _refused(problem, row):
        _add(masks, key, mask)
        left &= ~mask
    if not (row.admin or row.takes_all) and (held := problem.dedicated & left):
        masks[CauseKind.ALLOCATED.value, ""] = held
        left &= ~held
    for device, fault in row.faults.items():
        if left >> device & 1:
            _add(masks, (CauseKind.SELECTOR_ERROR.value, fault.detail), 1 << device)
            left &= ~(1 << device)
    # Candidates have passed all checks except those of counters, taints and constraints.
    plain = row.candidates & left & ~(problem.consuming | row.tainted | row.tight)
    if row.grows or row.takes_all or not problem.features.partitionable_devices:
        plain = 0
    for number in row.constraints:
        plain &= ~_without(problem.facts[row.claim][number])
    if plain:
        _add(masks, (SUITABLE, ""), plain)
        left &= ~plain
    if left:
        usage = Usage(problem)
        for device in _bits(left):
            cause = causes.of(problem, usage, row, device)
            key = (SUITABLE, "") if cause is None else (cause.kind.value, cause.about)
            _add(masks, key, 1 << device)
    return masks


def _refused(problem: Problem, row: RequestRow) -> Iterable[tuple[tuple[str, str], int]]:
    """The devices that selectors refused, by selector; cached with the view."""
    remembered = problem.view.part(_RefusedBySelectors)
    key = (row.request.selectors, row.request.class_name)
    known = remembered.get(key)
    if known is not None and known.refused is row.refused:
        return known.masks.items()
    masks: _Masks = {}
    for device, refusal in row.refused.items():
        cause = causes.of_refusal(refusal, row)
        _add(masks, (cause.kind.value, cause.about), 1 << device)
    remembered[key] = _Refused(refused=row.refused, masks=masks)
    return masks.items()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Refused:
    refused: Mapping[int, Exclusion]
    masks: _Masks


class _RefusedBySelectors(Bounded[object, _Refused]):
    """The refused devices of one view, by selectors and class."""

    def __init__(self) -> None:
        super().__init__(eligibility.MEMORY_MAX)


def _without(facts: Sequence[object]) -> int:
    """The devices without the attribute of a constraint."""
    mask = 0
    for index, one in enumerate(facts):
        if one is None:
            mask |= 1 << index
    return mask


def _is_enough(row: RequestRow, suitable: int) -> bool:
    if row.takes_all:
        return bool(row.listed) and all(suitable >> index & 1 for index in row.listed)
    return suitable.bit_count() >= row.count


def _first_name(problem: Problem, mask: int) -> str:
    _, pool, device = problem.view.devices[(mask & -mask).bit_length() - 1].id
    return f"{pool}/{device}"


def _add(masks: _Masks, key: tuple[str, str], mask: int) -> None:
    masks[key] = masks.get(key, 0) | mask


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        mask ^= low
        yield low.bit_length() - 1


CausesOf = Callable[[SummaryBounds], CauseSummary]
"""Collects the causes of an attempt's nodes within bounds; called only when they are written."""

"""The placement that a decision has chosen and not yet written, in the log (`delayed_binding`)."""

from dataclasses import dataclass

from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
)
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

ASSUMED = "Assumed"
"""The outcome of a decision whose writes follow later."""

RESERVED = "Reserved"
"""The outcome when the claims are written and the binding follows later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """A placement that a decision has chosen and not yet written.

    `claims` are all claims of the pod as (name, uid, is fresh), `allocations` the allocations of
    the fresh ones in order, then that of `extended`. Without `claims_at` no claim is written.
    """

    number: int
    claims: tuple[tuple[str, Uid, bool], ...]
    allocations: tuple[JsonObject, ...]
    extended: ExtendedClaim | None
    claims_at: Instant | None
    bind_at: Instant

    def in_flight(self, namespace: str) -> list[tuple[JsonObject, JsonObject]]:
        """Each claim to allocate with its allocation; fresh claims have only their identity."""
        fresh: list[JsonObject] = [
            {"metadata": {"namespace": namespace, "name": name, "uid": uid}}
            for name, uid, is_fresh in self.claims
            if is_fresh
        ]
        if self.extended is not None:
            fresh.append(self.extended.tree)
        return list(zip(fresh, self.allocations, strict=True))


def record(attempt: Attempt, *, claims_at: Instant | None, bind_at: Instant) -> JsonObject:
    """The record of a decision in the log, from which its writes can follow."""
    body: JsonObject = {
        "claims": [
            [
                claim.key.name,
                meta.uid(claim.tree),
                claim.allocation is None,
            ]
            for claim in attempt.claims
        ],
        "allocations": list(attempt.allocations),
        "bindAt": bind_at,
    }
    if claims_at is not None:
        body["claimsAt"] = claims_at
    if attempt.extended is not None:
        body["extended"] = {
            "tree": attempt.extended.tree,
            "mappings": list(attempt.extended.mappings),
        }
    return body


def read(inputs: JsonView) -> Assumed:
    """The placement in a record; `inputs` are the inputs of the decision.

    A decision of another program may be inconsistent: nothing is assumed then.
    """
    body = json_tree.mapping(inputs, "assumed")
    claims, allocations = _claims_of(body), json_tree.objects(body, "allocations")
    extended = _extended_of(json_tree.mapping(body, "extended"))
    wanted = sum(is_fresh for _, _, is_fresh in claims) + (extended is not None)
    is_whole = wanted == len(allocations)
    return Assumed(
        number=json_tree.integer(inputs, "attempt") or 1,
        claims=claims if is_whole else (),
        allocations=tuple(allocations) if is_whole else (),
        extended=extended if is_whole else None,
        claims_at=_instant(body, "claimsAt"),
        bind_at=_instant(body, "bindAt") or Instant(0),
    )


_CLAIM = [str, str, bool]


def _claims_of(body: JsonView) -> tuple[tuple[str, Uid, bool], ...]:
    rows = json_tree.get(body, "claims")
    return tuple(
        (row[0], row[1], row[2])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list) and [type(part) for part in row] == _CLAIM
    )


def _extended_of(body: JsonView) -> ExtendedClaim | None:
    tree = body.get("tree")
    if not isinstance(tree, dict):
        return None
    return ExtendedClaim(tree=tree, mappings=tuple(json_tree.objects(body, "mappings")))


def _instant(body: JsonView, name: str) -> Instant | None:
    number = json_tree.integer(body, name)
    return None if number is None else Instant(number)

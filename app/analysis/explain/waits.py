"""Pods that have their devices but no binding yet: what the devices still lack.

The claims are written and reserved. The scheduler checks them every five seconds until all binding
conditions are true, one fails, or the time is up. Parity: controllers.md 3.8.
"""

from collections.abc import Iterator

from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.scheduling.plugins.dynamic_resources import (
    binding_conditions,
    pod_claims,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.binding_conditions import (
    BindingReadiness,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import (
    ClaimsNotReady,
    PodClaim,
)
from app.domain.values import counts, json_tree, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.meta import Condition
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NOT_YET = "not true yet"
"""The words before the binding conditions for which pods wait."""


def cause(
    views: Views, tree: JsonObject, now: Instant, timeout: int
) -> tuple[str, tuple[Reason, ...]]:
    """One sentence and the reasons behind it; empty for a pod that does not have all its devices.

    `timeout` is the time that the devices may take, in microseconds.
    """
    claims = _claims(views, tree)
    uid = meta.uid(tree)
    if not claims or not all(_is_held(claim, uid) for claim in claims):
        return "", ()
    node = core.nominated_node_name(tree) or "its node"
    lacking = tuple(reason for claim in claims for reason in _lacking(claim, now, timeout))
    if lacking:
        return f"its devices are being made ready for {node}", lacking
    return f"its claims are written, its binding to {node} is under way", ()


def shared_cause(views: Views, tree: JsonObject, now: Instant, timeout: int) -> str:
    """The cause without names that differ between pods that wait for the same; else empty."""
    text, lacking = cause(views, tree, now, timeout)
    if not lacking:
        return text and "the claims are written, the binding is under way"
    kinds = sorted(
        {
            (result.driver, kind)
            for claim in _claims(views, tree)
            if claim.allocation is not None
            for result in dra.results_of(claim.allocation)
            for kind in result.binding_conditions
            if not _is_true(binding_conditions.conditions_of(claim.tree, result).get(kind))
        }
    )
    missing = [f"{kind} of a device of driver {driver}" for driver, kind in kinds]
    noun = counts.plural(len(missing), "binding condition")
    return f"{NOT_YET}: {noun} {listed(missing, len(missing))}" if missing else text


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def remedies(views: Views, tree: JsonObject) -> Iterator[str]:
    """The reports of drivers that the pod needs to be bound, one sentence for each condition."""
    for claim in _claims(views, tree):
        for result in () if claim.allocation is None else dra.results_of(claim.allocation):
            reported = binding_conditions.conditions_of(claim.tree, result)
            wanted = dict.fromkeys(result.binding_conditions, "True")
            for kind in result.binding_failure_conditions if wanted else ():
                if _is_true(reported.get(kind)):
                    wanted[kind] = "False"
            for kind, status in wanted.items():
                condition = reported.get(kind)
                if condition is None or condition.status != status:
                    where = f"of {result.text} in the status of claim {claim.name}"
                    yield f"report condition {kind} {where} as {status}"


def failures(views: Views, tree: JsonObject, now: Instant, timeout: int) -> Iterator[Reason]:
    """The claims of a waiting pod whose devices could not be made ready, so that no node fits."""
    for claim in _claims(views, tree):
        if claim.allocation is None:
            continue
        look = binding_conditions.look(claim.tree, claim.allocation, now, timeout)
        if look.readiness in (BindingReadiness.FAILED, BindingReadiness.TIMED_OUT):
            yield Reason(text=f"{look.text}; the claim is given back before the pod is tried anew")


def places(views: Views, tree: JsonObject) -> Iterator[Reason]:
    """The nodes on which the allocated claims of a waiting pod can be used."""
    for claim in _claims(views, tree):
        if claim.allocation is None:
            continue
        selector = json_tree.mapping(claim.allocation, "nodeSelector")
        terms = [term_text(term) for term in core.node_selector_terms(selector)]
        where = " or ".join(terms) if terms else "on every node"
        users = [consumer.name for consumer in dra.consumers(claim.tree)]
        used = f", and reserved for {listed(users, len(users))}" if users else ""
        yield Reason(text=f"claim {claim.name} is allocated {where}{used}")


def repeated(tree: JsonObject) -> Iterator[Reason]:
    """The claims that two entries of the pod name: such a pod is never bound."""
    pod = pods.facts(tree)
    names = [named.name for named in pods.named_claims(pod) if named.name]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield Reason(
            text=f"two entries of the pod name claim {name}: it is allocated for the first and "
            "refused for the second, so the pod is never bound",
            issues=("C18",),
        )


def term_text(term: JsonView) -> str:
    """The nodes of a node selector term as text: `on node a`, `rack In r1`."""
    parts = []
    for one in (*core.field_requirements(term), *core.requirements(term)):
        if one.key == "metadata.name" and one.operator == "In":
            parts.append(f"on node {listed(one.values, len(one.values))}")
        else:
            words = (one.key, one.operator, ", ".join(one.values))
            parts.append(" ".join(word for word in words if word))
    return " with ".join(parts)


def label_names(selector: JsonView) -> list[str]:
    """The label keys that a node selector uses."""
    terms = selector.get("nodeSelectorTerms") or ()
    return list(dict.fromkeys(one.key for term in terms for one in core.requirements(term)))


def condition_text(condition: Condition) -> str:
    """A condition with its reason and message: `Ready is False (NoPower: the rack is off)`."""
    why = ": ".join(part for part in (condition.reason, condition.message) if part)
    return f"{condition.type} is {condition.status}{f' ({why})' if why else ''}"


def _claims(views: Views, tree: JsonObject) -> tuple[PodClaim, ...]:
    try:
        return pod_claims.resolve_all(views.objects, pods.facts(tree))
    except ClaimsNotReady:
        return ()


def _is_held(claim: PodClaim, uid: Uid) -> bool:
    return claim.allocation is not None and pods.is_reserved_for(claim.tree, uid)


def _lacking(claim: PodClaim, now: Instant, timeout: int) -> Iterator[Reason]:
    """The unmet conditions of a claim, result by result."""
    assert claim.allocation is not None, "only an allocated claim lacks conditions"
    look = binding_conditions.look(claim.tree, claim.allocation, now, timeout)
    if look.readiness is BindingReadiness.READY:
        return
    lines: list[Reason] = []
    for result in dra.results_of(claim.allocation):
        conditions = binding_conditions.conditions_of(claim.tree, result)
        for kind in result.binding_failure_conditions:
            if kind in conditions and conditions[kind].status == "True":
                text = condition_text(conditions[kind])
                lines.append(Reason(text=f"{result.text}: {text}, a failure"))
        for kind in result.binding_conditions:
            if kind not in conditions:
                lines.append(
                    Reason(text=f"{result.text}: the driver has not reported condition {kind} yet")
                )
            elif conditions[kind].status != "True":
                lines.append(Reason(text=f"{result.text}: {condition_text(conditions[kind])}"))
    yield Reason(
        text=f"claim {claim.name}{_until(claim.allocation, timeout)}", children=tuple(lines)
    )


def _until(allocation: JsonView, timeout: int) -> str:
    try:
        since = timestamps.parse(dra.allocation_time(allocation))
    except TimestampError:
        return ""
    end = timestamps.seconds_text(Instant(since + timeout))
    return f", looked at every {binding_conditions.POLL // SECOND} s until {end}"

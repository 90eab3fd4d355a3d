"""Drivers that selectors require and that publish nothing, with those of nearly the same name."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import takewhile

from app.analysis import scope
from app.analysis.device_selectors import required_drivers
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.cel import STORED, CompileError, compile_expression
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView


def unpublished(views: LiveViews, pod: JsonObject) -> Iterator[Reason]:
    """The classes and requests of a pod that select a driver without slices, and their writers."""
    published = _published(views)
    reasons: dict[str, Reason] = {}
    for subject, key, expression in _selectors(views, pod) if published else ():
        reasons |= {one.text: one for one in _missing(published, subject, key, expression)}
    yield from [*reasons.values()][:NAMES_MAX]


def of_class(views: LiveViews, key: ObjectKey, tree: JsonView) -> Iterator[Reason]:
    """The drivers without slices that a class selects."""
    published = _published(views)
    for each in dra.class_selectors(tree) if published else ():
        yield from _missing(published, f"class {key.name}", key, dra.selector_expression(each))


def _published(views: LiveViews) -> list[str]:
    """The drivers that publish slices."""
    return sorted({driver for driver, _ in views.inventory.pool_ids()})


def _missing(
    published: Sequence[str], subject: str, key: ObjectKey, expression: str
) -> Iterator[Reason]:
    """The drivers that an expression of a subject requires and that publish nothing."""
    for driver in _required(expression):
        if driver in published:
            continue
        near = scope.nearest(driver, [other for other in published if _is_typed_as(driver, other)])
        there = near or f"slices here are of {listed(published, len(published))}"
        yield Reason(
            text=f"{subject} selects driver {driver}, which publishes no slice here; {there}",
            about=key,
            holds=partial(_has, expression),
            since="; so written",
            is_kept=True,
        )


def _selectors(views: LiveViews, pod: JsonObject) -> Iterator[tuple[str, ObjectKey, str]]:
    """The selectors of the pod's claims without devices: whose they are, and the expression."""
    facts = pods.facts(pod)
    for named in pods.named_claims(facts):
        key = claim_key(facts.namespace, named.name or "")
        claim = views.objects.get(key) or {}
        if dra.allocation(claim) is not None:
            continue
        for request in dra.requests(claim):
            wishes = [(request.name, request.exactly)] if request.exactly is not None else []
            wishes += [(f"{request.name}/{one.name}", one) for one in request.first_available]
            for name, wish in wishes:
                chosen = ObjectKey(*api_resources.DEVICE_CLASSES, "", wish.device_class_name)
                for tree in dra.class_selectors(views.objects.get(chosen) or {}):
                    yield f"class {chosen.name}", chosen, dra.selector_expression(tree)
                for tree in wish.selectors:
                    whose = f"request {name} of claim {key.namespace}/{key.name}"
                    yield whose, key, dra.selector_expression(tree)


def missing(views: LiveViews, pod: JsonObject) -> set[str]:
    """The drivers without slices that the pod's claims without devices select."""
    published = _published(views)
    return {
        driver
        for _, _, expression in _selectors(views, pod)
        for driver in _required(expression)
        if driver not in published
    }


def _is_typed_as(driver: str, other: str) -> bool:
    """Whether somebody may have typed a driver for another one.

    What both names end with, such as a domain, does not make them similar.
    """
    ends = zip(reversed(driver), reversed(other), strict=False)
    shared = sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], ends))
    own, theirs = driver[: len(driver) - shared], other[: len(other) - shared]
    return SequenceMatcher(None, own, theirs).ratio() >= _ALIKE_MIN


_ALIKE_MIN = 0.6
"""The similarity from which on a name counts as a typing error of another one."""


def _required(expression: str) -> tuple[str, ...]:
    try:
        return required_drivers(compile_expression(expression, environment=STORED))
    except CompileError:
        return ()


def _has(expression: str, tree: JsonView) -> bool:
    """Whether a class or a claim has a selector with this expression."""
    own = [dra.selector_expression(each) for each in dra.class_selectors(tree)]
    for request in dra.requests(tree):
        for wish in (request.exactly, *request.first_available):
            own += [] if wish is None else map(dra.selector_expression, wish.selectors)
    return expression in own

"""Stuck claims: those that keep devices without a user, or that are not deleted."""

from collections.abc import Iterable
from functools import partial

from app.analysis.explain import lives, sources
from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.dra import Consumer
from app.domain.values.json_tree import JsonObject

IN_USE = "deletion waits for the end of pods with a reservation"
UNPROTECTED = "deletion waits for a finalizer, although no pod has a reservation"
OTHERS = "deletion waits for consumers that are no pods"
UNSHOWN = "deletion is not over, and the recording does not show what it waits for"
CONSUMER_GONE = "reserved for a pod that does not exist"
CONSUMER_ENDED = "reserved for a pod that has ended"


def cause(views: Views, key: ObjectKey, tree: JsonObject) -> str:
    """The way in which a claim is stuck; empty when it is not."""
    pods = [
        _pod_of(views, key.namespace, consumer)
        for consumer in dra.consumers(tree)
        if consumer.resource == api_resources.PODS[1]
        and consumer.api_group == api_resources.PODS[0]
    ]
    if any(pod is None for pod in pods):
        return CONSUMER_GONE
    if any(pod is not None and core.is_finished(pod) for pod in pods):
        return CONSUMER_ENDED
    if meta.is_deleting(tree):
        if pods:
            return IN_USE
        if dra.consumers(tree):
            return OTHERS
        return UNSHOWN if _is_row(views, key, tree) else UNPROTECTED
    return ""


def consumer_text(consumer: Consumer) -> str:
    """A consumer of a claim as text: `podgroups.x.test gang-1`."""
    group = f".{consumer.api_group}" if consumer.api_group else ""
    return f"{consumer.resource}{group} {consumer.name}"


def consumers_text(namespace: str, consumers: Iterable[Consumer]) -> str:
    """The consumers of a claim as text: `pods shop/a, shop/b`, and what is no pod behind them."""
    names, others = list[str](), list[str]()
    for consumer in consumers:
        if (consumer.api_group, consumer.resource) == api_resources.PODS:
            names.append(f"{namespace}/{consumer.name}")
        else:
            others.append(consumer_text(consumer))
    if not names:
        return listed(others, len(others))
    text = f"{counts.plural(len(names), 'pod')} {listed(names, len(names))}"
    return f"{text}, {listed(others, len(others))}" if others else text


def foreign(key: ObjectKey, finalizer: str) -> Reason:
    """The reason that a foreign finalizer keeps a deleted claim, with the write that set it."""
    return Reason(
        text=lives.keeping(finalizer),
        about=key,
        holds=partial(lives.keeps, finalizer),
        since="; set",
        is_kept=True,
    )


def _is_row(views: Views, key: ObjectKey, tree: JsonObject) -> bool:
    """Whether the claim is known from a table alone, which shows no finalizers and no pods."""
    event = views.objects.event(key)
    is_printed = event is not None and sources.is_printed([event])
    return is_printed and not meta.finalizers(tree) and not dra.consumers(tree)


def _pod_of(views: Views, namespace: str, consumer: Consumer) -> JsonObject | None:
    """The pod of a reservation; None if it is gone, even where another one has its name."""
    pod = views.objects.get(ObjectKey(*api_resources.PODS, namespace, consumer.name))
    is_it = pod is not None and consumer.uid in ("", meta.uid(pod))
    return pod if is_it else None

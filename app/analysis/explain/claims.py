"""The state of a claim: its devices, consumers and deletion, and the pods that want it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from app.analysis.explain import devices, lives, sources, stuck, tainted
from app.analysis.explain.observed import drivers_reports
from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.devices.model import value_text
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, counts, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.dra import Consumer, DeviceResult
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

USERS_MAX = 8
"""The number of consumers shown one by one; the others are counted."""


def consumers_of(tree: JsonView) -> list[str]:
    """The names of the consumers for which the claim is reserved."""
    return [consumer.name for consumer in dra.consumers(tree)]


def state_of(
    views: LiveViews,
    events: Sequence[Event],
    tree: JsonObject,
    quirks: ControllerQuirks,
    now: Instant,
) -> Iterator[Reason]:
    """Reasons: the claim's deletion, devices, other holders, constraints, taints, consumers."""
    results = dra.results(tree)
    if meta.is_deleting(tree):
        yield from _ending(events, tree)
    if results:
        yield from _allocated(events, tree, results)
        yield from devices.held_twice(views, tree, results)
        yield from _constraints(views, tree, results)
        for result in results:
            yield from tainted.of_result(views, tree, result, quirks, now)
            if lost := tainted.not_copied(tree, result):
                shown = " and ".join(tainted.toleration_text(each) for each in lost)
                yield Reason(
                    text=f"tolerations of request {result.request} were not copied to the "
                    f"allocation of {result.text}: {shown}; eviction looks at the copy only",
                    is_kept=True,
                )
        claim = claim_key(meta.namespace(tree), meta.name(tree))
        yield from drivers_reports.reasons(claim, tree)
        yield from drivers_reports.of_configurations(views, claim, tree)
        yield from devices.unpublished(views, claim, results)
    elif dra.allocation(tree) is not None and not sources.is_printed(events):
        yield Reason(text="is allocated without devices, because it requests none")
    yield from _reserved(views, events, tree)


def users_are_shown(views: LiveViews, namespace: str) -> bool:
    """Whether the recorded pods of a namespace tell which claims they use; rows of tables do not.

    Without a pod, none may have been recorded.
    """
    keys = views.objects.keys(*api_resources.PODS, namespace)
    pods = [event for key in keys if (event := views.objects.event(key)) is not None]
    return bool(pods) and not any(sources.is_printed([event]) for event in pods)


def users_of(views: LiveViews, key: ObjectKey, tree: JsonView) -> list[str]:
    """The pods that want the claim: its consumers, else its owner, else a pod that names it."""
    owners = [owner.name for owner in meta.owners(tree)[:1]]
    return consumers_of(tree) or owners or _naming(views, key)


def _allocated(
    events: Sequence[Event], tree: JsonView, results: Sequence[DeviceResult]
) -> Iterator[Reason]:
    """The claim's devices, one line per request, with the event that allocated them."""
    wanted = dra.allocation(tree)
    since = sources.since(events, lambda state: dra.allocation(state) == wanted)
    lines = devices.allocated(results)
    if since is None:
        yield from lines
        return
    for line in lines:
        yield Reason(
            text=line.text,
            children=line.children,
            count=line.count,
            revision=since.revision,
            about=since.key,
            is_kept=True,
        )


def _constraints(
    views: LiveViews, tree: JsonView, results: Sequence[DeviceResult]
) -> Iterator[Reason]:
    """Each constraint with the values of the chosen devices: met, not met, or violated."""
    for constraint in dra.constraints(tree):
        name = constraint.match_attribute or constraint.distinct_attribute
        kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        bound = [
            result
            for result in results
            if not constraint.requests
            or result.request in constraint.requests
            or result.request.partition("/")[0] in constraint.requests
        ]
        values = [(result, _values(views, result, name)) for result in bound]
        known = [each for _, each in values if each]
        shown = partial(_shown, typed=len({of for each in known for of, _ in each}) > 1)
        lines = dict.fromkeys(f"{result.text}: {shown(each)}" for result, each in values)
        verdict = ""
        if len(known) < len(values):
            verdict = "not met: a device has no such attribute now"
        elif constraint.match_attribute:
            common = [one for one in known[0] if all(one in each for each in known)]
            if common:
                verdict = f"met, the {counts.plural(len(common), 'value')} "
                verdict += "in common " if any(len(each) > 1 for each in known) else ""
                verdict += f"{counts.verb(len(common), 'is')} {', '.join(one for _, one in common)}"
        elif all(number == 1 for number in Counter(chain.from_iterable(known)).values()):
            verdict = "met, all values differ"
        if not verdict:
            seen = list(dict.fromkeys(map(shown, known)))
            verdict = f"violated by {listed(seen, len(seen))}"
        children = tuple(Reason(text=line) for line in lines)
        yield Reason(text=f"constraint {kind} {name}: {verdict}", children=children, is_kept=True)


def _shown(values: Sequence[tuple[str, str]], *, typed: bool) -> str:
    """The values of an attribute, with their types if devices have several; a list in brackets."""
    texts = [f"{text} ({of})" if typed else text for of, text in values]
    text = ", ".join(texts) or "no such attribute"
    return f"[{text}]" if len(texts) > 1 else text


def _values(views: LiveViews, result: DeviceResult, attribute: str) -> tuple[tuple[str, str], ...]:
    """The currently published values of an attribute, each with its type; a list may have several.

    A short name is in the driver's domain. Empty where the attribute is not published.
    """
    slice_and_device = tainted.device_of(views, result.id)
    if slice_and_device is None:
        return ()
    attributes = slice_and_device[1].attributes
    domain, _, short = attribute.rpartition("/")
    value = attributes.get(attribute)
    if value is None and domain == result.driver:
        value = attributes.get(short)
    if not isinstance(value, dict) or not value:
        return ()
    kind, own = next(iter(value.items()))
    values = own if isinstance(own, list) else [own]
    return tuple(dict.fromkeys((kind.removesuffix("s"), value_text(one)) for one in values))


def _ending(events: Sequence[Event], tree: JsonView) -> Iterator[Reason]:
    """The user who requested the claim's deletion, and the finalizers that keep the claim."""
    yield from lives.deletion_request(events)
    consumers = dra.consumers(tree)
    for finalizer in meta.finalizers(tree):
        if finalizer != well_known.CLAIM_PROTECTION:
            yield stuck.foreign(claim_key(meta.namespace(tree), meta.name(tree)), finalizer)
            continue
        if consumers:
            names = ", ".join(consumer.name for consumer in consumers[:USERS_MAX])
            more = len(consumers) - USERS_MAX
            names += f" and {more} more" if more > 0 else ""
            ends = counts.verb(len(consumers), "ends")
            text = f"finalizer {finalizer} keeps it until {names} {ends}"
        else:
            text = f"finalizer {finalizer} keeps it until its devices are given back"
        yield Reason(text=text, is_kept=True)


def _reserved(views: LiveViews, events: Sequence[Event], tree: JsonView) -> Iterator[Reason]:
    consumers = dra.consumers(tree)
    lines = [_consumer(views, events, tree, consumer) for consumer in consumers[:USERS_MAX]]
    if len(consumers) > USERS_MAX:
        lines.append(Reason(text=counts.of(len(consumers) - USERS_MAX, "more consumer")))
    if consumers:
        names = listed([consumer.name for consumer in consumers], len(consumers))
        yield Reason(text=f"reserved for {names}", children=tuple(lines), count=len(consumers))
    if len(consumers) >= pods.RESERVED_MAX:
        claim = claim_key(meta.namespace(tree), meta.name(tree))
        reserved = {consumer.uid for consumer in consumers}
        left = [
            key.name
            for key in _using(views, claim)
            if (pod := views.objects.get(key)) is not None
            and meta.uid(pod) not in reserved
            and not core.is_finished(pod)
        ]
        text = "it cannot be reserved for more"
        if left:
            waits = f"{counts.plural(len(left), 'pod')} {listed(left, len(left))} "
            text += f": {waits}{counts.verb(len(left), 'waits')} until one of these ends"
        yield Reason(text=text, count=len(left), is_kept=True)


def _consumer(
    views: LiveViews, events: Sequence[Event], tree: JsonView, consumer: Consumer
) -> Reason:
    """One consumer: since when the claim is reserved for it, and the state of its pod."""
    uid = consumer.uid
    since = sources.since(events, lambda state: dra.has_consumer(state, uid))
    key = pod_key(meta.namespace(tree), consumer.name)
    if consumer.resource != "pods":
        text = f"{stuck.consumer_text(consumer)}, which is no pod"
        return sources.made(since, f"{text}: its own controller ends the reservation; reserved")
    pod = views.objects.get(key)
    if pod is None and sources.is_recorded(events) and not users_are_shown(views, key.namespace):
        state = "which is not among the recorded pods"
    elif pod is None:
        state = "which is gone"
    elif meta.uid(pod) != uid:
        state = "which was replaced by another pod of the same name"
    elif core.is_finished(pod):
        state = f"which has ended ({meta.phase(pod)})"
    elif meta.is_deleting(pod):
        state = f"which is being deleted, on node {core.node_name(pod) or 'none'}"
    elif core.node_name(pod):
        state = f"on node {core.node_name(pod)}"
    else:
        is_placed = core.needs_no_node(pod)
        state = "whose node was not recorded" if is_placed else "which has no node yet"
    return sources.made(since, f"pod {consumer.name}, {state}; reserved")


def nodes_of_users(views: LiveViews, tree: JsonView) -> list[str]:
    """The nodes of the pods that a claim is reserved for and that have not ended."""
    keys = (pod_key(meta.namespace(tree), one.name) for one in dra.consumers(tree)[:USERS_MAX])
    users = [pod for key in keys if (pod := views.objects.get(key)) is not None]
    return [*dict.fromkeys(core.node_name(pod) for pod in users if not core.is_finished(pod))]


def _naming(views: LiveViews, claim: ObjectKey) -> list[str]:
    return [key.name for key in islice(_using(views, claim), 1)]


def _using(views: LiveViews, claim: ObjectKey) -> Iterator[ObjectKey]:
    """The pods that name a claim, or for which it was made."""
    for key in views.objects.keys("", "pods", claim.namespace):
        pod = pods.facts(views.objects.get(key) or {})
        if any(named.name == claim.name for named in pods.named_claims(pod)):
            yield key

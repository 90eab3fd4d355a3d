"""The nodes and claims that keep pods waiting, which the scheduler's message leaves unnamed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

from app.analysis import scheduler_messages
from app.analysis.explain import circumstances, stuck, waits
from app.analysis.explain.nearby import affinities, labels, ports, taints_and_cordons
from app.analysis.explain.nearby import holders as holders_nearby
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.nearby.taints_and_cordons import Closing
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.findings.devices import REFUSED
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.controllers.scheduling.scheduling_cycle.cycle import NOT_AVAILABLE
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

ELSEWHERE = NOT_AVAILABLE.reasons[0]
"""The words for nodes on which allocated claims of a pod cannot be used."""

_TAINTED = "node(s) had untolerated taint"
"""The words of all releases; older ones name the taint behind them."""
_CORDONED = filters.UNSCHEDULABLE.reasons[0]


def are_other(text: str) -> bool:
    """Whether nodes refuse a pod for more than devices, taints and cordons, by a finding."""
    known = (REFUSED, _CORDONED)
    reasons = text.partition(": ")[2].split(", ")
    return not all(one in known or one.startswith(_TAINTED) for one in reasons)


def elsewhere(
    views: LiveViews,
    pod: JsonObject,
    text: str,
    nodes: Sequence[NodeAnswer],
    sees: Callable[[ObjectKey], bool],
) -> Iterator[str]:
    """Nodes whose devices would do for a pod, and that refuse it for this reason, with details.

    Of nodes on which it needs no devices the details are all. `sees` is whether the reader may see
    an object on which a detail rests.
    """
    names = [one.node for one in nodes]
    having = [one.node for one in nodes if one.has_devices]
    noun, refuses = counts.plural(len(having), "node"), counts.verb(len(having), "refuses")
    if having:
        shown = listed(having, len(having))
        yield f"its claims could be allocated on {noun} {shown}, which {refuses} it: {text}"
    yield from [*dict.fromkeys(one.detail for one in nodes if one.detail)][:1]
    details: Iterator[Reason] = iter(())
    if text in filters.AFFINITY.reasons:
        details = labels.unmatched(views, pod, names)
    elif lacking := scheduler_messages.lacking(text):
        details = nearby_nodes.short(views, pod, dict.fromkeys(names, lacking))
    refusals = dict.fromkeys(names, text)
    near = affinities.keeping_away(views, pod, refusals), ports.in_use(views, pod, refusals)
    seen = Reason(text="", children=(*chain(details, *near),)).seen_by(sees)
    yield from (reason.text for reason in seen.children)


def held(views: LiveViews, pod: JsonObject, holders: Mapping[str, str]) -> Iterator[str]:
    """A line for each holder (`NAMESPACE/CLAIM`) of a device that a pod waits for.

    `holders` names a device of each. The line says what keeps the holder, or which pod uses it.
    """
    for holder, device in holders.items():
        namespace, _, name = holder.rpartition("/")
        is_made = meta.controller(views.objects.get(claim_key(namespace, name)) or {}) is not None
        # The name of a claim from a template or elsewhere says nothing: its pod is placed instead.
        is_unfamiliar = is_made or namespace != meta.namespace(pod)
        users = holders_nearby.users(views, (holder,)) if is_unfamiliar else ()
        near = chain(circumstances.useless_holders(views, (holder,)), users)
        yield next((reason.text for reason in near), _use(views, holder, device))


def _use(views: LiveViews, holder: str, device: str) -> str:
    namespace, _, name = holder.rpartition("/")
    claim = views.objects.get(claim_key(namespace, name)) or {}
    users = stuck.consumers_text(namespace, dra.consumers(claim))
    text = f"claim {holder} has {device}"
    return f"{text}, for {users}" if users else text


class Obstacles:
    """The taints, cordons and allocated claims that keep the pods of a history waiting."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views

    def closings(self, refusal: str, pod: JsonObject) -> list[Closing]:
        """The taints and cordons that the refusal of a pod is about."""
        if _TAINTED not in refusal and _CORDONED not in refusal:
            return []
        spec = pod_spec.read(pod)
        only = spec.only_nodes
        nodes = {name: tree for name, tree in self._closed.items() if only is None or name in only}
        return taints_and_cordons.of_pod(spec, nodes)[:NAMES_MAX]

    def lines(self, refusal: str, pod: JsonObject) -> Iterator[str]:
        """A line for each allocated claim that the refusal of a pod is about."""
        if ELSEWHERE in refusal:
            yield from (reason.text for reason in waits.places(self._views, pod))

    @cached_property
    def _closed(self) -> dict[str, JsonView]:
        """The nodes with a cordon or a taint."""
        objects = self._views.objects
        trees = {key.name: objects.get(key) or {} for key in objects.keys(*api_resources.NODES)}
        return {
            name: tree
            for name, tree in trees.items()
            if core.unschedulable(tree) or core.taints(tree)
        }

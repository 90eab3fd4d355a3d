"""What a claim says of itself: its devices, its consumers, its end, and the pods that want it."""

from collections.abc import Iterator

from app.analysis.explain import devices
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView


def consumers_of(tree: JsonView) -> list[str]:
    """The names of those for whom the claim is reserved."""
    return [consumer.name for consumer in dra.consumers(tree)]


def state_of(views: LiveViews, tree: JsonView) -> Iterator[Reason]:
    """Its end, its devices with those that are published no more, and its consumers."""
    results = dra.results(tree)
    consumers = consumers_of(tree)
    if deleted := meta.deletion_timestamp(tree):
        ends = "once its consumers have ended" if consumers else "with its last finalizer"
        yield Reason(text=f"was deleted at {deleted} and goes {ends}")
    if results:
        yield from devices.allocated(results)
        yield from devices.unpublished(views, results)
    elif dra.allocation(tree) is not None:
        yield Reason(text="is allocated without devices, because it requests none")
    if consumers:
        yield Reason(text=f"reserved for {', '.join(consumers)}")


def users_of(views: LiveViews, key: ObjectKey, tree: JsonView) -> list[str]:
    """The pods that want the claim: its consumers, its owner, or the first that names it."""
    owners = [owner.name for owner in meta.owners(tree)[:1]]
    return consumers_of(tree) or owners or _naming(views, key)


def _naming(views: LiveViews, claim: ObjectKey) -> list[str]:
    for key in views.objects.keys("", "pods", claim.namespace):
        tree = views.objects.get(key) or {}
        for entry in core.resource_claims(tree):
            if entry.get("resourceClaimName") == claim.name:
                return [key.name]
    return []

"""The TTL annotation of nodes, which tells kubelets how long they may cache objects.

The TTL grows with the cluster, in steps that overlap, so that adding and removing a node does not
switch it back and forth. As upstream, a node is only written after another change of it. Parity:
controllers.md 5.5 (the annotation), upstream's ttl controller (the steps).
"""

from collections.abc import Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, decimals
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

NAME = "node-ttl"

ANNOTATION = "node.alpha.kubernetes.io/ttl"

STEPS = ((0, 100, 0), (90, 500, 15), (450, 1_000, 30), (900, 2_000, 60), (1_800, 2**31 - 1, 300))
"""The steps: the least and the greatest number of nodes, and the TTL in seconds."""


class NodeTtlReconciler(KeyedController[tuple[str], Views]):
    """Updates the annotation of each node that changes."""

    name = NAME
    reads: Reads = frozenset({api_resources.NODES})

    def __init__(self) -> None:
        super().__init__()
        self._nodes: set[str] = set()
        self._step = 0

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        """The node that changed; all nodes are counted."""
        if not is_of(event.key, api_resources.NODES):
            return
        if event.type is EventType.OBJECT_DELETED:
            self._nodes.discard(event.key.name)
        else:
            self._nodes.add(event.key.name)
            yield (event.key.name,)
        self._move()

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Writes the annotation of one node."""
        place = ObjectKey(*api_resources.NODES, "", key[0])
        tree = views.objects.get(place)
        if tree is None or _current_ttl(tree) == self._seconds:
            return None
        patch = PatchObject(
            key=place,
            version="v1",
            type=PatchType.STRATEGIC,
            body={"metadata": {"annotations": {ANNOTATION: str(self._seconds)}}},
            options=MANAGER,
        )
        return Work((patch,))

    @property
    def _seconds(self) -> int:
        return STEPS[self._step][2]

    def _move(self) -> None:
        """Moves to another step when the number of nodes has left the current one."""
        while len(self._nodes) > STEPS[self._step][1]:
            self._step += 1
        while len(self._nodes) < STEPS[self._step][0]:
            self._step -= 1


def _current_ttl(tree: JsonView) -> int | None:
    """The current TTL in the annotation of a node; None when it is not a number."""
    return decimals.natural(meta.annotation(tree, ANNOTATION))

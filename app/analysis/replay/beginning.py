"""The beginning of a replay that does not start with the first event: the objects at a moment."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.log import Event, Head, Revision
from app.domain.values import api_resources
from app.domain.values.fields import core, dra


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The state of a history at `head`, which equals that of a recording `after` a revision.

    `state` is a snapshot of its objects. `objects` are their last events in the order of the log;
    controllers see them as upstream's controllers see a list when they start.
    """

    head: Head
    after: Revision
    state: bytes
    objects: Sequence[Event]

    @property
    def shows_work(self) -> bool:
        """Whether a pod has a node or a claim has devices, so that the control plane is up."""
        return any(_shows_work(event) for event in self.objects)


def _shows_work(event: Event) -> bool:
    match event.key[:2]:
        case api_resources.PODS:
            return bool(core.node_name(event.object))
        case api_resources.RESOURCE_CLAIMS:
            return dra.allocation(event.object) is not None
        case _:
            return False

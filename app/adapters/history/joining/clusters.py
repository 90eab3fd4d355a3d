"""Detection of sources of different clusters.

A cluster keeps the namespace kube-system as long as it exists, so that two of its uids name two
clusters. Tools take this uid for the identity of a cluster.
"""

from dataclasses import dataclass, field

from app.adapters.history.reading import Notes
from app.domain.errors import InputError
from app.domain.log.records import CHANGES, Loss, Record
from app.domain.values.identifiers import Uid

NAMESPACE = "kube-system"

CLUSTERS_MAX = 100
"""Clusters that are named as such; more are only read."""


@dataclass(slots=True)
class Clusters:
    """The clusters of the records of an import, by the uid of their namespace kube-system."""

    _places: dict[Uid, str] = field(default_factory=dict)

    def note(self, record: Record, notes: Notes) -> None:
        """Examine a record; one of another cluster than the first is noted as a loss."""
        if record.name != NAMESPACE or record.resource != "namespaces" or record.group:
            return
        if not record.uid or record.op not in CHANGES or Loss.PRINTED in record.losses:
            return
        if record.uid in self._places or len(self._places) >= CLUSTERS_MAX:
            return
        first = next(iter(self._places.values()), "")
        self._places[record.uid] = record.place
        if first:
            notes.lose(
                InputError(
                    f"{NAMESPACE} has another uid than at {first}: the files are of different "
                    "clusters, whose objects are mixed up in this history",
                    place=record.place,
                    cure="import the files of each cluster into a history of its own",
                )
            )

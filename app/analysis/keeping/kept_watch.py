"""The classes and functions of which the state of an `InvariantWatch` consists."""

from app.analysis.keeping.graphs import GraphForms
from app.analysis.verify.invariants import (
    absent,
    claims,
    cluster,
    evictions,
    known,
    looks,
    nodes,
    placements,
    pods,
    pools,
    queues,
    readiness,
    reading,
    rule_statuses,
    specs,
    stock,
    unseen,
    violations,
    watch,
)
from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.watch import InvariantWatch
from app.domain.log import (
    Event,
    Revision,
    event,
    lost_lines,
    played_kubelets,
    raw_parts,
    records,
    store_versions,
)
from app.domain.log import looks as log_looks
from app.domain.values.timestamps import Instant

_ROOMS = (
    absent,
    claims,
    cluster,
    event,
    evictions,
    known,
    log_looks,
    looks,
    lost_lines,
    nodes,
    placements,
    played_kubelets,
    pods,
    pools,
    queues,
    raw_parts,
    readiness,
    reading,
    records,
    rule_statuses,
    specs,
    stock,
    store_versions,
    unseen,
    violations,
    watch,
)

FORMS = GraphForms(
    [
        each
        for room in _ROOMS
        for each in vars(room).values()
        if isinstance(each, type) and each.__module__ == room.__name__
    ],
    (Instant, queues.Queues.decided_from),
    {"not-shown": known.NOT_SHOWN},
    {Event: Event.undecoded},
)


def expect(watch: InvariantWatch, switches: Switches, revision: Revision) -> None:
    """Let a watch that goes on know the switches of revisions after a revision."""
    watch.cluster.expect(each for each in switches.later if each[0] > revision)

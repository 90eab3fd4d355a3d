"""The reports of drivers in `status.devices` of a claim."""

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import Cluster
from app.analysis.verify.invariants.unseen import is_shown
from app.analysis.verify.invariants.violations import Finding, ViolationKind
from app.domain.log import Event
from app.domain.log.raw_parts import RawClaimStatus


def judge(cluster: Cluster, event: Event, status: RawClaimStatus) -> None:
    """Notes reports about devices that the claim does not have. Parity: objects.md 5.4.

    The server refuses such a report, and drops one whose device is deallocated. Only states that
    were recorded themselves are judged.
    """
    if not is_shown(event.stamp.origin) or not event.uid:
        return
    given = reading.allocation(status.allocation)
    results = () if given is None else given.devices.results
    allocated = {(*each.id, each.share_id) for each in results}
    for report in reading.reports(status.devices):
        device = (*report.id, report.share_id)
        if device not in allocated:
            name = "/".join(filter(None, device))
            finding = Finding(
                kind=ViolationKind.BROKEN,
                objects=(event.key,),
                message=f"status.devices reports device {name}, which the claim does not have",
            )
            place = ("reported-device-allocated", event.key, *device)
            cluster.note_fault(event.key, place, finding)

"""The sources of the taints that keep a waiting pod from devices: who set them, and when."""

from collections.abc import Sequence

from app.analysis.explain import circumstances, sources, tainted
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.tallies import devices_text
from app.analysis.explain.trees import NodeReason
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.log import ObjectKey
from app.domain.values import identifiers
from app.service.explaining.evidence import ExplainedMoment
from app.service.explaining.former_circumstances import kept


async def reasons(evidence: ExplainedMoment, nodes: Sequence[NodeReason]) -> list[Reason]:
    """For each taint and object that sets it: the write since which it does, and its devices."""
    places: dict[tuple[str, ObjectKey], tuple[tainted.TaintSource, dict[str, None]]] = {}
    for group in circumstances.excluded(nodes, CauseKind.TAINT):
        about = "" if group.reason.cause is None else group.reason.cause.about
        for name in group.devices:
            place = identifiers.parse_device(name)
            known = tainted.device_of(evidence.views, place)
            for taint in () if known is None else known[1].taints:
                if known is not None and taint.text == about:
                    source = tainted.origin(evidence.views, place, taint, known[0])
                    entry = places.setdefault((about, source.about), (source, {}))
                    entry[1][name] = None
            if len(places) > NAMES_MAX:
                break
    reasons: list[Reason] = []
    for (about, key), (source, names) in list(places.items())[:NAMES_MAX]:
        since = sources.since(await evidence.changes(key), source.holds)
        if since is not None and evidence.sight.sees(since):
            text = f"{source.text} taints {devices_text(len(names))} {about} since it was written"
            reasons.append(kept(since, text))
    return reasons

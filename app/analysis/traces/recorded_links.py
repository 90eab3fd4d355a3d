"""Links between the events of a recording: which change rests on which earlier one.

The log of another control plane holds no decisions and no causes, but the objects:
the pod for which a claim was made, the claims of a pod that is placed, the pods whose end gives a
claim's devices back, the taint or the placement for which a pod is evicted, and the eviction before
a deletion.
"""

from collections.abc import Callable, Iterable

from app.analysis.spans import Spans
from app.analysis.verify.invariants.stock import Evictor
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, condition_types
from projections.timeline import Entry
from projections.timeline_kinds import POD_DELETION, POD_EVICTED

POD_CREATED, POD_DELETED = "PodCreated", "PodDeleted"
POD_PLACED, POD_FINISHED = condition_types.POD_SCHEDULED, "PodFinished"
CLAIM_CREATED, CLAIM_DELETED = "ClaimCreated", "ClaimDeleted"
CLAIM_ALLOCATED, CLAIM_DEALLOCATED = "ClaimAllocated", "ClaimDeallocated"


RULE_CREATED, RULE_CHANGED = "RuleCreated", "RuleChanged"


class RecordedLinks:
    """Takes the entries in the order of the log, and gives the revision on which each rests.

    Example: pod p is created at 3, its claim c at 4 and allocated at 6, and p is placed at 7: 4
    rests on 3, 7 on 6, and 3 and 6 on nothing that is known.
    """

    def __init__(
        self, spans: Spans, evictors: Callable[[Revision], Iterable[Evictor]] = lambda _: ()
    ) -> None:
        """`evictors` has the taints that evicted the pod that was marked at a revision."""
        self._spans = spans
        self._evictors = evictors
        self._last: dict[tuple[str, ObjectKey], int] = {}

    def source(self, entry: Entry) -> int:
        """The revision of the change on which an entry rests; 0 where the log has none."""
        revision = self._before(entry)
        self._note(entry)
        return revision

    def _before(self, entry: Entry) -> int:
        key, spans = entry.subject, self._spans
        if entry.kind == CLAIM_CREATED:
            return self._newest(POD_CREATED, self._owners(key))
        if entry.kind == POD_PLACED:
            since = self._last.get((POD_CREATED, key), 0)
            allocated = self._newest(CLAIM_ALLOCATED, spans.claims_of(key))
            return allocated if allocated > since else 0
        if entry.kind == CLAIM_DEALLOCATED:
            since = self._last.get((CLAIM_ALLOCATED, key), 0)
            users = spans.claimed.get(key, ())
            ended = max(self._newest(kind, users) for kind in (POD_DELETED, POD_FINISHED))
            return ended if ended > since else 0
        if entry.kind == POD_EVICTED:
            tainted = max(map(self._tainting, self._evictors(entry.revision)), default=0)
            # A taint that was there before evicts when the pod gets its devices.
            return max(tainted, self._last.get((POD_PLACED, key), 0)) if tainted else 0
        if entry.kind == POD_DELETION:
            return self._last.get((POD_EVICTED, key), 0)
        if entry.kind == POD_DELETED:
            return self._last.get((POD_DELETION, key), 0)
        return 0

    def _tainting(self, evictor: Evictor) -> int:
        """The newest write of a rule that evicts, or that with which a driver set the taint."""
        if not evictor.rule:
            return evictor.written
        keys = [ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", evictor.rule)]
        return max(self._newest(kind, keys) for kind in (RULE_CREATED, RULE_CHANGED))

    def _note(self, entry: Entry) -> None:
        """Keeps the newest revision of each kind and object; those of an earlier life are over."""
        for kind in _OVER_WITH.get(entry.kind, ()):
            self._last.pop((kind, entry.subject), None)
        if entry.kind in _KEPT:
            self._last[entry.kind, entry.subject] = entry.revision

    def _newest(self, kind: str, keys: Iterable[ObjectKey]) -> int:
        return max((self._last.get((kind, key), 0) for key in keys), default=0)

    def _owners(self, claim: ObjectKey) -> Iterable[ObjectKey]:
        """The pods for which a claim was made from a template, not those that name it."""
        for pod in self._spans.claimed.get(claim, ()):
            named, _ = self._spans.wanted_by(pod)
            if pod[:2] == api_resources.PODS and claim not in named:
                yield pod


_KEPT = frozenset(
    (
        *(POD_CREATED, POD_PLACED, POD_DELETED, POD_FINISHED, POD_EVICTED, POD_DELETION),
        *(CLAIM_ALLOCATED, RULE_CREATED, RULE_CHANGED),
    )
)

_OVER_WITH = {
    RULE_CREATED: (RULE_CHANGED,),
    POD_CREATED: (POD_PLACED, POD_DELETED, POD_FINISHED, POD_EVICTED, POD_DELETION),
    POD_DELETED: (POD_CREATED,),
    CLAIM_CREATED: (CLAIM_ALLOCATED,),
    CLAIM_DEALLOCATED: (CLAIM_ALLOCATED,),
    CLAIM_DELETED: (CLAIM_ALLOCATED,),
}
"""The kinds of which nothing of the same object counts any more after an entry of a kind."""

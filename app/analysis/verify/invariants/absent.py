"""The writes that a recording leaves out altogether, and the rules that rest on them.

A policy may leave out a group of users, and a filter a verb. Nothing shows it but that such lines
are missing where they have to be. Parity: history-formats.md 4.5.
"""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from app.analysis.verify.invariants.cluster import Cluster, losses_of
from app.analysis.verify.invariants.known import KnownClaim, KnownPod
from app.analysis.verify.invariants.looks import Looks
from app.analysis.verify.invariants.readiness import READY
from app.analysis.verify.invariants.unseen import READ
from app.analysis.verify.invariants.violations import (
    CLOCK_TOLERANCE,
    IN_FLIGHT,
    LATE_AFTER,
    Finding,
    Moment,
    Violation,
    ViolationKind,
)
from app.domain.log import Event, ObjectKey, Revision, doubts
from app.domain.log.lost_lines import LostLines
from app.domain.log.played_kubelets import PlayedKubelets
from app.domain.log.records import Loss
from app.domain.log.store_versions import NameSuccession, Successions, Versions, WriteSpan
from app.domain.values.timestamps import Instant

SHARED = frozenset(("device-in-one-claim", "counters-not-overdrawn", "consumed-within-capacity"))
"""The rules that claims break together: one may have given its devices back."""

NEEDS_PODS = "reservation-names-pod"
ORDERED = "bound-pod-has-claims"
"""The rule that depends on the order of two writes of which one, a binding, has no version. It is
broken by a write that is not there: the allocation or reservation of a claim."""

EXCHANGED = "allocation-unchanged"
"""The rule that is broken where the write is lost that took the allocation before from a claim."""

SUCCEEDED = "removed-before-renewed"
"""The rule that is broken where an object has another uid, and nothing ended the first one."""

JUDGED = frozenset((group, resource) for resource, group in READ.items())
"""The kinds of which that is judged."""

_KUBELET = "system:node:"
"""How the name of a kubelet's user begins: no server lets it write pods under another one."""

_SYSTEM = "system:"

_ALLOCATED = b'"allocation":'
"""The text before an allocation, by which most lines are told apart from one that changes it."""

_SLOWER = 2
"""A binding may take so many times as long as the slowest recorded one."""


class Absence(NamedTuple):
    """The write that would keep all rules intact if it was made and not recorded.

    A write of a claim, or the end of a pod.
    """

    of_claim: bool = False
    of_pod: bool = False


class _ClaimLine(NamedTuple):
    """A line about a claim; its version is 0 where it has none."""

    time: Instant
    user: str
    verb: str
    version: int


class _Binding(NamedTuple):
    """The binding of a pod: when it was sent at the latest, and when it was answered."""

    revision: Revision
    sent: Instant
    time: Instant
    user: str


class LastAllocations:
    """Learns from imported lines when claims were last written, and how soon pods were bound then.

    The scheduler binds a pod after its claims are allocated and reserved for it. Where the last
    line about a claim shows that it is not, that write was never made, or its line is lost. A lost
    line leaves a version of the store that no line is about. Parity: controllers.md 3.7, 4.6.
    """

    def __init__(self) -> None:
        self.versions = Versions()
        self._written: dict[ObjectKey, _ClaimLine] = {}
        self._given: dict[ObjectKey, _ClaimLine] = {}
        # The versions of the line before and of one that changes an allocation, by its revision.
        self._exchanged: dict[Revision, tuple[int, int]] = {}
        self._bound: dict[ObjectKey, _Binding] = {}
        self._slowest: int | None = None
        self._lost: dict[ObjectKey, WriteSpan] = {}
        self._ends_at = Instant(0)
        self._longest = 0

    def follow(self, cluster: Cluster, event: Event) -> None:
        """Notes a line; the cluster is as it was before."""
        key, stamp = event.key, event.stamp
        self.versions.follow(event)
        if not event.is_about_object:
            return
        self._ends_at = max(self._ends_at, stamp.time)
        if stamp.origin is not None and stamp.origin.asked:
            self._longest = max(self._longest, stamp.origin.answered - stamp.origin.asked)
        if key.resource == "resourceclaims":
            claim, last = cluster.claims.get(key), self._written.get(key)
            if claim is not None and last is not None and claim.held_since == last.time:
                self._given[key] = last
            version = _version_of(event)
            if claim is not None and last is not None and _is_exchanged(claim, event):
                self._exchanged[event.revision] = last.version, version
            self._written[key] = _ClaimLine(stamp.time, stamp.actor.user, stamp.verb, version)
        elif key.resource == "pods" and stamp.verb == "create":
            pod = cluster.pods.get(key)
            if pod is None or not pod.is_there or pod.node_name:
                return
            sent = Instant(min(stamp.time, (stamp.origin and stamp.origin.asked) or stamp.time))
            self._bound[key] = _Binding(event.revision, sent, stamp.time, stamp.actor.user)
            for claim in pod.claims:
                if claim.allocation is not None and any(
                    each.uid == pod.uid for each in claim.reserved
                ):
                    line = self._written.get(claim.key)
                    lag = 0 if line is None else stamp.time - line.time
                    self._slowest = max(lag, self._slowest or 0)

    def lost_in(self, claim: KnownClaim, pods: Iterable[ObjectKey]) -> WriteSpan | None:
        """The time of a lost line about a claim, after which a pod of these is bound.

        A scheduler asks for a binding when the write of the claim is answered, and soon: as a rule
        no later than twice its slowest binding. None if no line could make the last one right.
        """
        binding = next((self._bound[pod] for pod in pods if pod in self._bound), None)
        if binding is None or claim.written > binding.revision:
            return None
        if self._is_given_to_nobody(claim, binding.user):
            return None
        soon = 0 if self._slowest is None else binding.time - _SLOWER * self._slowest
        line = self._written.get(claim.key)
        since = Instant(max(0 if line is None else line.time, soon))
        return WriteSpan(since, binding.sent)

    def comes_after_the_end(self, pod: ObjectKey, begin: Moment) -> bool:
        """Whether the answer to the end of a pod may come after the end of the log.

        The pod was removed, or finished, before the write of its claim at `begin`, by an older
        version. Later writes of the claim change nothing about that. The write that ended it took
        no longer than twice the slowest request of the log, as far as clocks say.
        """
        binding = self._bound.get(pod)
        is_by_binding = binding is not None and binding.revision >= begin.revision
        longest = _SLOWER * self._longest or CLOCK_TOLERANCE
        if is_by_binding or self._ends_at - begin.time > min(IN_FLIGHT, longest):
            return False
        return self.are_lost({pod: WriteSpan(Instant(begin.time - IN_FLIGHT), begin.time)})

    def are_lost(self, lines: Mapping[ObjectKey, WriteSpan]) -> bool:
        """Whether all of these lines about objects may be lost, beside those that were so before.

        Each leaves a version of its own, so one version is no excuse for two bindings.
        """
        before = [span for key, span in self._lost.items() if key not in lines]
        if not self.versions.may_hide_all(list(lines.values()), before):
            return False
        self._lost.update(lines)
        return True

    def excludes(self, writes: Sequence[WriteSpan]) -> bool:
        """Whether it is proved that not all of these writes can be without a line."""
        return self.versions.are_proofs and not self.versions.may_hide_all(writes)

    def follows_directly(self, exchange: Revision) -> bool:
        """Whether no line can be lost between one that changes an allocation and the one before.

        The store gives each write a version, whatever else of the claim or of others is lost.
        """
        before, after = self._exchanged.get(exchange, (0, 0))
        return before > 0 and self.versions.are_all_recorded(before, after)

    def are_recorded(self, spans: Iterable[WriteSpan]) -> bool:
        """Whether no line about an object can be lost in any of these times."""
        return not any(self.versions.may_hide(*each) for each in spans)

    def _is_given_to_nobody(self, claim: KnownClaim, scheduler: str) -> bool:
        """Whether a scheduler gave a claim its devices and reserved it for no pod in that write.

        None does: it writes both at once, and takes back a reservation by a patch.
        """
        if claim.allocation is None or claim.reserved:
            return False
        return any(
            line is not None and line[:3] == (claim.held_since, scheduler, "update")
            for line in (self._written.get(claim.key), self._given.get(claim.key))
        )


class LeftOut:
    """Learns from imported lines which users wrote pods, and with which verbs objects changed.

    `ends` when the source shows the states of pods alone, not that one is gone.
    """

    def __init__(self) -> None:
        self._verbs: set[str] = set()
        self._has_users = self._has_kubelets = False
        self.ends = False
        self._played = PlayedKubelets()

    def follow(self, event: Event) -> None:
        """Notes the writer and the verb of a line."""
        self._verbs.add(event.stamp.verb)
        if event.key.resource == "pods" and Loss.NO_DELETES in losses_of(event):
            self.ends = True
        if not self._has_kubelets and event.key.resource == "pods":
            user = event.stamp.actor.user
            self._has_kubelets = user.startswith(_KUBELET)
            self._has_users |= user.startswith(_SYSTEM)
            if event.is_about_object:
                self._played.follow(event)

    @property
    def kubelets(self) -> bool:
        """Whether no kubelet wrote a pod, in a log that names the users of pods.

        Then no line shows that a pod ran, or that it finished: unless others did what kubelets do.
        """
        return self._has_users and not self._has_kubelets and not self._played.is_sure

    @property
    def updates(self) -> bool:
        """Whether no object was updated, in a log with other changes. Claims are allocated so."""
        return "update" not in self._verbs and self._verbs.issuperset(("create", "patch"))

    @property
    def patches(self) -> bool:
        """Whether no object was patched, in a log with other changes. Statuses are written so."""
        return "patch" not in self._verbs and self._verbs.issuperset(("create", "update"))


class Missing:
    """The lines of a log that may be missing without a gap, learnt from the imported ones."""

    def __init__(self, lacking: Collection[str]) -> None:
        """`lacking` is as in `Cluster`."""
        self.lost = LostLines(lacks_ends=doubts.ENDS in lacking)
        self._left_out = LeftOut()
        self._last = LastAllocations()
        self.looks = Looks()
        self._successions = Successions()
        # The writes between two objects of a name, of which some cannot be without a line.
        self._between: dict[ObjectKey, list[tuple[WriteSpan, ...]]] = {}
        # The last lines, before those that the cluster holds, of pods that needed a claim.
        self._needed: dict[ObjectKey, Revision] = {}

    def follow(self, cluster: Cluster, event: Event) -> None:
        """Notes a line; the cluster is as it was before."""
        if event.is_about_object:
            self.looks.follow(event)
            if cluster.open and (pod := cluster.pods.get(event.key)) is not None:
                self._note_needed(pod)
        self.lost.follow(event)
        cluster.stock.may_lack_pools = self.lost.may_lack_pools
        self._left_out.follow(event)
        self._last.follow(cluster, event)
        succession = self._successions.follow(event, self._last.versions)
        if succession is not None and event.key[:2] in JUDGED:
            self._note_succession(cluster, event, succession)
        if Loss.TIMES_CONTRADICT in losses_of(event):
            cluster.odd_times.add(event.key)

    def may_explain(self, cluster: Cluster, violation: Violation, absent: Absence) -> bool:
        """Whether a rule seems to be broken because a write is not recorded that has to follow."""
        lost, left_out = self.lost, self._left_out
        if violation.rule in SHARED:
            return lost.lacks_releases and self._may_be_given_back(cluster, violation)
        if violation.rule == SUCCEEDED:
            return not all(map(self._last.excludes, self._between[violation.objects[0]]))
        if violation.rule == EXCHANGED:
            is_direct = self._last.follows_directly(violation.begin.revision)
            return violation.kind.is_failure and lost.may_lack_claims and not is_direct
        if violation.rule == READY and self.is_report_lost(cluster, violation):
            return True
        if violation.rule == NEEDS_PODS:
            begin = violation.begin.time
            span = WriteSpan(begin, Instant(begin + LATE_AFTER))
            is_absent = absent.of_claim and violation.kind is ViolationKind.LATE
            return is_absent and lost.may_lack_claims and not self._last.excludes([span])
        if (absent.of_claim or absent.of_pod) and lost.is_lossy:
            return True
        lacks_ends = left_out.kubelets or left_out.ends or lost.lacks_ends
        if (absent.of_pod and lacks_ends) or (absent.of_claim and left_out.updates):
            return True
        if absent.of_pod and self.is_end_late(cluster, violation):
            return True
        return bool(self.last_lost(cluster, violation))

    def _note_succession(self, cluster: Cluster, event: Event, succession: NameSuccession) -> None:
        """Notes that another object has the name of one that cannot have ended.

        The fault is that of the first object, whatever becomes of the second one.
        """
        key, writes = event.key, succession.writes
        self._between.setdefault(key, []).append(writes)
        acts = "the removal of the first one"
        acts += " and the creation of the second one" if len(writes) > 1 else ""
        message = f"uid {succession.old} is followed by {succession.new}, and the versions of the "
        message += f"store leave no room for {acts}"
        place = SUCCEEDED, key, succession.old
        finding = Finding(kind=ViolationKind.BROKEN, objects=(key,), message=message)
        cluster.note_fault(key._replace(name=f"{key.name} {succession.old}"), place, finding)

    def _may_be_given_back(self, cluster: Cluster, violation: Violation) -> bool:
        """Whether claims may have given their devices back before another one got them.

        No later line shows them, nor a pod for which they are reserved and that has not ended; and
        what the others take fits, also later.
        """
        begin = violation.begin.revision
        return bool(self._given_back(cluster, violation, begin)) and all(
            parts.fit_without(self._given_back(cluster, violation, revision))
            for revision, parts in violation.uses
        )

    def _given_back(
        self, cluster: Cluster, violation: Violation, revision: Revision
    ) -> Collection[ObjectKey]:
        """The claims of a violation that may have given their devices back before a revision."""
        claims = (cluster.claims[key] for key in violation.objects if key in cluster.claims)
        return {
            claim.key
            for claim in claims
            if claim.written < revision and self._needed_until(claim) < revision
        }

    def _note_needed(self, pod: KnownPod) -> None:
        """Notes for the claims of a pod that is written now that its last line needs them."""
        for claim in pod.claims:
            if (last := _needed_by(pod, claim)) > self._needed.get(claim.key, Revision(0)):
                self._needed[claim.key] = last

    def _needed_until(self, claim: KnownClaim) -> Revision:
        """The last revision that shows a pod on a node for which the claim is reserved."""
        shown = self._needed.get(claim.key, Revision(0))
        return max(shown, *(_needed_by(pod, claim) for pod in claim.users), Revision(0))

    def is_end_late(self, cluster: Cluster, violation: Violation) -> bool:
        """Whether a claim was taken from a bound pod whose end may be answered after the log.

        No later line shows the pod.
        """
        begin = violation.begin
        if violation.rule != ORDERED or violation.end is not None:
            return False
        pods = [key for key in violation.objects if key in cluster.pods]
        return all(self._last.comes_after_the_end(pod, begin) for pod in pods)

    def is_report_lost(self, cluster: Cluster, violation: Violation) -> bool:
        """Whether a line may be lost in which a driver reports that devices are ready."""
        pairs = itertools.permutations(violation.objects, 2)
        spans = [cluster.early[pair] for pair in pairs if pair in cluster.early]
        if self.lost.may_lack_claims:
            return not all(self._last.excludes([span]) for span in spans)
        return not self._last.are_recorded(spans)

    def last_lost(self, cluster: Cluster, violation: Violation) -> Mapping[ObjectKey, Instant]:
        """The claims of a bound pod whose last line may be lost, the one that they lack, and since
        when.

        Where the claim has not even its finalizer, two lines would be lost: that is taken into
        account only if other lines are known to be.
        """
        if violation.rule != ORDERED:
            return {}
        lost: dict[ObjectKey, WriteSpan] = {}
        begin = violation.begin
        for key in violation.objects:
            claim = cluster.claims.get(key)
            if claim is None:
                continue
            if not claim.is_there or claim.written > begin.revision:
                return {}
            is_next = claim.allocation is not None or claim.is_protected
            span = self._last.lost_in(claim, violation.objects)
            if span is None or not (is_next or self.lost.has_any):
                return {}
            lost[key] = span
        if not (lost and self._last.are_lost(lost)):
            return {}
        return {key: span.since for key, span in lost.items()}


def _version_of(event: Event) -> int:
    """The version that a line gives its object, 0 where that is not known."""
    origin = event.stamp.origin
    if origin is None or Loss.NO_RV in origin.losses or not origin.resource_version.isdigit():
        return 0
    return int(origin.resource_version)


def _is_exchanged(claim: KnownClaim, event: Event) -> bool:
    """Whether a line shows a claim with another allocation than before."""
    body = event.body
    return _ALLOCATED in body and bytes(claim.raw_allocation) not in body


def _needed_by(pod: KnownPod, claim: KnownClaim) -> Revision:
    """The last write of a pod if it shows that the pod is on a node and needs a claim, or 0."""
    if not (pod.is_there and pod.node):
        return Revision(0)
    return pod.placed if any(each.uid == pod.uid for each in claim.reserved) else Revision(0)


def absence(
    cluster: Cluster,
    objects: Iterable[ObjectKey],
    begin: Revision,
    end: Revision | None,
    *,
    together: Revision,
) -> Absence:
    """The writes that may be absent while a rule is broken, from `begin` to `end` (None: it lasts).

    A write that shows the claim as it was proves that nothing of it is missing, and one that shows
    the pod, at `begin` or later, that it had not ended. So does the list at whose end the rule is
    broken: `together` is its first revision, else `begin`.
    """
    claims, pods = [], []
    for key in objects:
        if (claim := cluster.claims.get(key)) is not None:
            claims.append(claim)
        if (pod := cluster.pods.get(key)) is not None and pod.is_there:
            pods.append(pod)
    return Absence(
        of_claim=all(
            (claim.earlier if claim.written == end else claim.written) <= begin for claim in claims
        ),
        of_pod=any(pod.written < together for pod in pods),
    )

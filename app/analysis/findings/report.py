"""The structure of the answer: findings in the order of their importance."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from app.domain.log import ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.values.timestamps import SECOND, Instant

OBJECTS_SHOWN_MAX = 5
"""The number of objects that a finding names; its count is exact."""


class FindingKind(StrEnum):
    """The kinds of findings, in the order in which findings of equal severity are shown."""

    BROKEN_INVARIANT = "BrokenInvariant"
    WAITING_PODS = "WaitingPods"
    REQUESTED_PODS = "RequestedPods"
    UNSTARTED_PODS = "UnstartedPods"
    REFUSED_PODS = "RefusedPods"
    REFUSED_WRITES = "RefusedWrites"
    FAILED_JOBS = "FailedJobs"
    SUSPENDED_JOBS = "SuspendedJobs"
    FAILED_PODS = "FailedPods"
    STUCK_CLAIMS = "StuckClaims"
    KEPT_OBJECTS = "KeptObjects"
    OVERDUE_PODS = "OverduePods"
    EVICTED_PODS = "EvictedPods"
    EXCEEDED_QUOTAS = "ExceededQuotas"
    UNREADY_NODES = "UnreadyNodes"
    KEPT_NODES = "KeptNodes"
    UNUSABLE_POOLS = "UnusablePools"
    TAINTED_DEVICES = "TaintedDevices"
    CHANGED_DEVICES = "ChangedDevices"
    UNHEALTHY_DEVICES = "UnhealthyDevices"
    UNREACHED_DEVICES = "UnreachedDevices"
    UNREAD_CONFIGURATIONS = "UnreadConfigurations"
    IDLE_PATCHES = "IdlePatches"
    IDLE_RULES = "IdleRules"
    KNOWN_ISSUE = "KnownIssue"
    UNREADABLE_OBJECTS = "UnreadableObjects"
    LATER_ALTERNATIVES = "LaterAlternatives"
    MISSING_ACCOUNTS = "MissingAccounts"
    UNJUDGED_VOLUMES = "UnjudgedVolumes"
    UNUSED_CLAIMS = "UnusedClaims"
    REQUESTED_CLAIMS = "RequestedClaims"
    DOUBTED_INVARIANT = "DoubtedInvariant"
    LOSSES = "Losses"
    NOTHING_KNOWN = "NothingKnown"


class Severity(StrEnum):
    """The severity of a finding, the most severe first."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


def severity_of_defect(kind: str, *, is_certain: bool) -> Severity:
    """The severity of a known defect or pitfall that shows.

    A pitfall works as designed: a user was surprised, and nothing broke.
    """
    if not is_certain:
        return Severity.NOTICE
    return Severity.ERROR if kind == "defect" else Severity.WARNING


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a finding is about, and the revision at which the finding shows in it.

    Of waiting pods, `alike` is the number of further ones that ask for the same, whose causes are
    those of this one; it is None for one of these further ones.
    """

    group: str
    resource: str
    namespace: str
    name: str
    revision: Revision
    alike: int | None = 0

    @classmethod
    def of(cls, key: ObjectKey, revision: Revision, alike: int | None = 0) -> "Subject":
        """The object with that key."""
        return cls(
            group=key.group,
            resource=key.resource,
            namespace=key.namespace,
            name=key.name,
            revision=revision,
            alike=alike,
        )

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One problem.

    It concerns `count` objects, `present` of them at the moment of the answer. `first` and `last`
    are the revisions between which it shows, 0 where unknown. `objects` are the newest. `causes`
    say why devices cannot be had, for pods that wait for devices, and which taints evicted pods;
    those of pods that wait no more say, too, how their wait ended.
    `begins` are the revisions at which an invariant was violated, the newest first.
    """

    kind: FindingKind
    severity: Severity
    text: str
    count: int
    present: int
    first: Revision
    last: Revision
    objects: tuple[Subject, ...] = ()
    causes: tuple[str, ...] = ()
    begins: tuple[Revision, ...] = ()


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """All findings as of `revision`, ranked; `omitted` counts those beyond the bound.

    The log was read up to `examined`. If that is less than `revision`, later events are included in
    the state of the objects but not yet in counts over time, and `note` says so. `certainty` is
    `sure`, or `unsure` where the recording lacks content; `doubts` are its losses.
    `unseen` says what the absence of findings does not show, where there are none.
    """

    history: str
    revision: Revision
    examined: Revision
    items: tuple[Finding, ...]
    omitted: int = 0
    note: str = ""
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()
    unseen: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the whole log up to the revision was read."""
        return self.examined >= self.revision


class KeptFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Findings for later requests, with the instants at which they were begun and ready.

    While no event comes, more becomes overdue: one answer a second is enough. One that took longer
    lasts as long as it took, so that a page that was not ready in time is there for a while when it
    is, and is not begun again with the request that gets it.
    """

    answer: Findings
    began: Instant
    ended: Instant

    def is_recent(self, now: Instant) -> bool:
        """Whether the answer does for a request at an instant."""
        is_of_this_second = now // SECOND == self.began // SECOND
        return is_of_this_second or self.began <= now < self.ended + (self.ended - self.began)


_SEVERITIES = tuple(Severity)
_KINDS = tuple(FindingKind)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sorts findings by severity, present before past, kind, count, last revision and text.

    What a recording lacks stands behind all that happened of the same severity.
    """
    return sorted(
        findings,
        key=lambda one: (
            _SEVERITIES.index(one.severity),
            one.kind is FindingKind.LOSSES,
            one.present == 0,
            _KINDS.index(one.kind),
            -one.count,
            -one.last,
            one.text,
        ),
    )

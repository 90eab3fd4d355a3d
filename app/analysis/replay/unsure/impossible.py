"""Recorded facts that are impossible, even if records are missing or clocks were wrong.

Gaps and wrong clocks change the results of a decide replay, so its differences then do not prove a
wrong decision. Two judges are independent of both: the invariants, which account for
gaps, and the repeated decision of each allocation on the recorded state on which it was written.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import ComparisonResult
from app.analysis.verify.invariants import InvariantWatch, Switches
from app.analysis.verify.invariants.violations import EVICTED, IN_FLIGHT, PROVEN, ViolationKind
from app.analysis.verify.parts import Deciders
from app.analysis.verify.reallocate import AllocationChecker
from app.analysis.views import LiveViews
from app.domain.log import Event, ObjectKey, Revision, doubts
from app.domain.log.pages import Page
from app.domain.values.timestamps import Instant

_DECIDED = frozenset(("pods", "resourceclaims"))
"""The kinds that controllers decide about; all others are inputs of decisions."""


class Impossible:
    """Finds impossible facts. Pass events to `read_ahead`, then to `take`, then call `found`."""

    def __init__(
        self,
        deciders: Deciders,
        switches: Switches,
        *,
        lacking: frozenset[str],
        never_seen: Iterable[str],
        changed: Mapping[ObjectKey, Instant] = MappingProxyType({}),
    ) -> None:
        """`lacking` is as in `uncertainty.lacking`; `never_seen` are kinds without objects.

        `changed` are objects that were written once more, unseen, some time since an instant.
        """
        self._changed = changed
        self._shown: dict[ObjectKey, Revision] = {}
        self._before: dict[ObjectKey, Revision] = dict.fromkeys(changed, Revision(0))
        self._watch = InvariantWatch(switches, lacking)
        self._index = AllocationIndex(
            lacks_ends=doubts.ENDS in lacking, lacks_times=doubts.TIMES in lacking
        )
        self._views = LiveViews(deciders.rules.profile)
        self._checker = AllocationChecker(
            self._index,
            self._views,
            compiler=deciders.compiler,
            quirks=deciders.quirks,
            schemas=deciders.rules.schemas,
            lacking=tuple(never_seen),
        )
        self._different = 0
        self._found: dict[ObjectKey, str] = {}

    def read_ahead(self, event: Event) -> None:
        """Learns what later judgements need from an event."""
        page = Page((event,))
        self._watch.follow_page(page)
        for known, parts in page.splits:
            self._index.add(known, parts)
        self._index.lacks_rules = self._watch.lacks_rules
        if event.key in self._changed and event.is_about_object:
            self._shown[event.key] = event.revision
        for key, since in self._changed.items():
            # What it was given may have been chosen before, and not be free any more.
            if event.stamp.time < since - IN_FLIGHT:
                self._before[key] = event.revision

    def take(self, event: Event) -> None:
        """Judges an event, and folds it."""
        while self._before:
            self._index.note_last_lost(*self._before.popitem())
        self._checker.before(event, is_ours=False)
        if event.key.resource == "resourceclaims":
            counts = self._checker.result().counts
            different = counts.get(ComparisonResult.DIFFERENT, 0)
            if different > self._different:
                self._found[event.key] = (
                    f"at revision {event.revision} the recorded state gives another allocation"
                )
            self._different = different
        self._views.fold(event)

    @property
    def lacks_rules(self) -> bool:
        """Whether an eviction shows that there were rules, of which none was recorded."""
        return self._watch.lacks_rules

    def problems(self) -> Mapping[ObjectKey, str]:
        """The pods and claims about which an impossible fact was recorded, with its text."""
        return {**self.broken(), **self._found}

    @property
    def doubtful_evictions(self) -> int:
        """The number of evictions that no known taint explains, and that an unknown one may.

        A run evicts at the recorded pace, so it shows none that came too early.
        """
        return sum(
            violation.rule == EVICTED and violation.kind is ViolationKind.UNSURE
            for violation in self._watch.violations()
        )

    def broken(self) -> Mapping[ObjectKey, str]:
        """The pods and claims whose recorded states break an invariant.

        For rules that a server enforces for every author (`PROVEN`), objects of all kinds count.
        """
        return {
            key: f"{violation.rule}: {violation.message}"
            for violation in reversed(self._watch.violations())
            if violation.kind.is_failure
            if all(
                violation.begin.revision <= self._shown.get(key, Revision(0))
                for key in violation.objects
                if key in self._changed
            )
            for key in violation.objects
            if key.resource in _DECIDED or violation.rule in PROVEN
        }

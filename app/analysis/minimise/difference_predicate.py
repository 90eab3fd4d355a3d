"""The predicate that a decide replay of a history differs from the history."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from app.analysis.replay.classes import DifferenceClass, Judgement, Sought
from app.analysis.replay.differences import PLACEMENTS
from app.analysis.replay.report import DecideDifference, DecideReport
from app.domain.log import Event
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta

_NO_JUDGEMENT = (
    DifferenceClass.NOT_COMPARABLE,
    DifferenceClass.NOT_EMULATED,
    DifferenceClass.AFTER_END,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferencePredicate:
    """The predicate that a decide replay has a difference; one without a class means any.

    Differences that no run can decide match only if their class is named.
    """

    sought: Sought

    @property
    def text(self) -> str:
        """The predicate as written."""
        return f"difference {self.sought.reason}".strip()

    def settled(self, report: DecideReport, events: Iterable[Event]) -> "DifferencePredicate":
        """The predicate with the class and the subjects that a whole history shows.

        What the history shows about these pods and their claims is explained, or it is not: the
        rest of it must not leave more unexplained about them. A class that judges nothing, such as
        "after the end", has no such subjects: a shorter history has others after its end.
        """
        first, sought = self.matching(report)[0], self.sought
        if sought.reason in _NO_JUDGEMENT:
            return self
        if not sought.reason:
            sought = Sought(reason=first.reason, aspect=first.aspect.value)
        matching = DifferencePredicate(sought=sought).matching(report)
        proofs: dict[str, set[str]] = {}
        groups: dict[str, set[str]] = {}
        for each in matching:
            proofs.setdefault(each.uid, set()).add(each.detail)
            groups.setdefault(each.uid, set()).update((each.uid, each.owner))
        unexplained = {
            each.uid for each in report.differences if each.reason == DifferenceClass.UNEXPLAINED
        }
        sought = replace(
            sought,
            shown={uid: tuple(sorted(proofs[uid])) for uid in sorted(proofs)},
            explained={
                uid: tuple(sorted(beside - unexplained))
                for uid, beside in sorted(_with_claims(groups, events).items())
            },
        )
        return DifferencePredicate(sought=sought)

    def near(self, report: DecideReport) -> "DifferencePredicate | None":
        """The predicate with the limit that no other placements differ than in a whole history.

        None for a class that judges nothing, for which no proof is sought.
        """
        if self.sought.reason in _NO_JUDGEMENT:
            return None
        placements = [each for each in report.differences if each.aspect in PLACEMENTS]
        placed = {uid for each in placements for uid in (each.uid, each.owner)}
        return DifferencePredicate(sought=replace(self.sought, placed=tuple(sorted(placed))))

    def matching(self, report: DecideReport) -> list[DecideDifference]:
        """The matching differences of a report, gravest first."""
        order = [str(reason) for reason in DifferenceClass]
        unexplained = {
            each.uid for each in report.differences if each.reason == DifferenceClass.UNEXPLAINED
        }
        matching = [
            each
            for each in report.differences
            if self._is_meant(each)
            and unexplained.isdisjoint(self.sought.explained.get(each.uid, ()))
        ]
        return sorted(
            matching,
            key=lambda each: order.index(each.reason) if each.reason in order else len(order),
        )

    def _is_meant(self, difference: DecideDifference) -> bool:
        if not self.sought.reason:
            return difference.reason not in _NO_JUDGEMENT
        judgement = Judgement(reason=difference.reason, detail=difference.detail)
        return self.sought.is_it((difference.aspect, difference.uid, ""), judgement)


def _with_claims(groups: Mapping[str, Set[str]], events: Iterable[Event]) -> dict[str, Set[str]]:
    """The pods and claims of each group of uids, and the claims that its pods own or use."""
    related: dict[str, set[str]] = {}
    for event in events:
        if event.key[:2] == api_resources.PODS:
            related.setdefault(event.uid, {event.uid})
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS and event.is_about_object:
            owners = [each.uid for each in meta.owners(event.object)]
            users = [each.uid for each in dra.consumers(event.object)]
            for uid in (event.uid, *owners, *users):
                related.setdefault(uid, set()).add(event.uid)
    return {
        subject: set().union(*(related.get(uid, ()) for uid in uids))
        for subject, uids in groups.items()
    }

"""The predicate that a decide replay of a history differs from the history."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from app.analysis.replay.classes import Judgement, Reason, Sought
from app.analysis.replay.differences import PLACEMENTS
from app.analysis.replay.report import DecideDifference, DecideReport
from app.domain.log import Event
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta

_NO_JUDGEMENT = (Reason.NOT_COMPARABLE, Reason.NOT_EMULATED, Reason.AFTER_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """The predicate that a decide replay has a difference; one without a class means any.

    Differences that no run can decide match only if their class is named.
    """

    sought: Sought

    @property
    def text(self) -> str:
        """The predicate as written."""
        return f"difference {self.sought.reason}".strip()

    def settled(self, report: DecideReport, events: Iterable[Event]) -> "Unlike":
        """The predicate with the class and the subjects that a whole history shows.

        What the history shows about these pods and their claims is explained, or it is not: the
        rest of it must not leave more unexplained about them.
        """
        first, sought = self.meant(report)[0], self.sought
        if not sought.reason:
            sought = Sought(reason=first.reason, aspect=first.aspect.value)
        meant = Unlike(sought=sought).meant(report)
        proofs: dict[str, set[str]] = {}
        for each in meant:
            proofs.setdefault(each.uid, set()).add(each.detail)
        unexplained = {each.uid for each in report.differences if each.reason == Reason.UNEXPLAINED}
        about = _pods_and_claims({uid for each in meant for uid in (each.uid, each.owner)}, events)
        sought = replace(
            sought,
            shown={uid: tuple(sorted(proofs[uid])) for uid in sorted(proofs)},
            explained=tuple(sorted(about - unexplained)),
        )
        return Unlike(sought=sought)

    def near(self, report: DecideReport) -> "Unlike":
        """The predicate with the limit that no other placements differ than in a whole history."""
        placements = [each for each in report.differences if each.aspect in PLACEMENTS]
        placed = {uid for each in placements for uid in (each.uid, each.owner)}
        return Unlike(sought=replace(self.sought, placed=tuple(sorted(placed))))

    def meant(self, report: DecideReport) -> list[DecideDifference]:
        """The matching differences of a report, gravest first."""
        explained = self.sought.explained
        if any(
            each.reason == Reason.UNEXPLAINED and each.uid in explained
            for each in report.differences
        ):
            return []
        order = [str(reason) for reason in Reason]
        return sorted(
            filter(self._is_meant, report.differences),
            key=lambda each: order.index(each.reason) if each.reason in order else len(order),
        )

    def _is_meant(self, difference: DecideDifference) -> bool:
        if not self.sought.reason:
            return difference.reason not in _NO_JUDGEMENT
        judgement = Judgement(reason=difference.reason, detail=difference.detail)
        return self.sought.is_it((difference.aspect, difference.uid, ""), judgement)


def _pods_and_claims(uids: Set[str], events: Iterable[Event]) -> Set[str]:
    """The pods and claims of these uids, and the claims that pods of these uids own or use."""
    chosen: set[str] = set()
    for event in events:
        if event.key[:2] == api_resources.PODS and event.uid in uids:
            chosen.add(event.uid)
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS and event.is_about_object:
            owners = {each.uid for each in meta.owners(event.object)}
            users = {each.uid for each in dra.consumers(event.object)}
            if uids & {event.uid, *owners, *users}:
                chosen.add(event.uid)
    return chosen

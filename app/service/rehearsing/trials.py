"""Attribution of changes to settings: runs the new world with some settings set back.

Each trial runs the recorded inputs, as in the two worlds of a rehearsal. Its result is compared
with the old world, and `attribution` determines the next trial.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from app.analysis.diff import compare as comparing
from app.analysis.diff.causes import Proof
from app.analysis.diff.matching import Pair
from app.analysis.diff.sides import DiffBounds, switches_of
from app.analysis.rehearse import attribution, contents
from app.analysis.rehearse.admission import Admission
from app.analysis.rehearse.attribution import Finding, Setting, SettingsSearch
from app.analysis.rehearse.contents import Contents, Following
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.objects import profile as profiles
from app.service import diffing
from app.service.rehearsing.runs import RehearsedWorld, Worlds


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Makes trials from both worlds, and searches for the settings that cause changes.

    `unlike` are the objects about which trials say nothing: uids of pods and claims that the old
    world decides otherwise than recorded. At most `runs_max` trials are made, with `events_max`
    events in all.
    """

    worlds: Worlds
    before: RehearsedWorld
    after: RehearsedWorld
    unlike: frozenset[str]
    bounds: DiffBounds
    runs_max: int
    events_max: int

    async def search(
        self,
        findings: Iterable[Finding],
        unsure: Iterable[Finding],
        subjects: Mapping[Finding, frozenset[ObjectKey]],
    ) -> SettingsSearch:
        """Search for the settings that cause each finding.

        `unsure` are other findings of the new world; no settings are searched for them. `subjects`
        are the objects that show a text or a field.
        """
        search = SettingsSearch(
            settings=attribution.differing(*self._values()),
            findings=tuple(dict.fromkeys(findings)),
            unsure=frozenset(unsure),
            # Each trial is as long as the new world.
            runs_max=min(self.runs_max, self.events_max // max(1, self.after.run.made)),
        )
        steps = search.steps()
        try:
            back = next(steps)
            while True:
                self.worlds.control.runs.step = (
                    f"switching settings back, run {search.runs} of at most {search.runs_max}"
                )
                shown, hidden = await self.shown(back, subjects)
                search.hidden[back] = hidden - shown
                back = steps.send(shown | hidden)
        except StopIteration:
            return search

    async def shown(
        self, back: frozenset[Setting], subjects: Mapping[Finding, frozenset[ObjectKey]]
    ) -> tuple[frozenset[Finding], frozenset[Finding]]:
        """The findings with these settings set back, and those that cannot be judged there."""
        before = self.before
        world = await self.worlds.world(self.mixed(back), before.rules)
        fared = await diffing.drive(comparing.differing(before.side, world.side, self.bounds))
        changed = changes(before, world, fared, self.unlike)
        findings = frozenset(findings_of(fared, changed, world.admission))
        return findings, changed.hidden(subjects)

    def mixed(self, back: frozenset[Setting]) -> HistoryInfo:
        """The settings of the new world with some set back, each switch by its name."""
        values = attribution.mixed(*self._values(), back)
        settings = {
            **self.after.info.settings,
            "profile": attribution.minor(values[attribution.RELEASE]),
            "quirks": _part(values, "quirk"),
            "rules": _part(values, "rule"),
            "gates": {
                name: is_on
                for name, is_on in _part(values, "gate").items()
                if name not in profiles.FIXED
            },
        }
        return msgspec.structs.replace(self.after.info, settings=settings)

    def proofs_of(self, search: SettingsSearch) -> dict[Finding, Proof]:
        """The settings of each finding as text, with old and new values; none if unknown."""
        return {
            finding: Proof(
                settings=attribution.words(cause.settings, *self._values()),
                is_minimal=cause.is_minimal,
                is_smallest=cause.is_smallest,
            )
            for finding, cause in search.attributions.items()
        }

    def _values(self) -> tuple[Mapping[Setting, str], Mapping[Setting, str]]:
        return switches_of(self.before.side), switches_of(self.after.side)


def changes(
    before: RehearsedWorld, after: RehearsedWorld, fared: Iterable[Pair], unlike: frozenset[str]
) -> Contents:
    """The changed writes of controllers, without those that follow from changed pods."""
    pods = frozenset(
        course.uid for pair in fared for course in (pair.a, pair.b) if course is not None
    )
    objects = frozenset() if after.admission is None else after.admission.concerned
    following = Following(pods=pods, objects=objects)
    return contents.changed(
        before.run.trace, after.run.trace, following, after.rules.schemas, unlike
    )


def pod_finding(pair: Pair) -> Finding:
    """The finding that the outcome of a pod changes."""
    name, ordinal = pair.place
    return ("pod", name, str(ordinal))


def findings_of(
    fared: Iterable[Pair], changed: Contents, admission: Admission | None
) -> Iterator[Finding]:
    """The findings of a world, compared with the old world."""
    yield from (pod_finding(pair) for pair in fared)
    yield from (("text", *each.words) for each in changed.texts)
    yield from (("field", *each.words) for each in changed.fields)
    if admission is not None:
        yield from (each.finding for each in admission.refused)
        yield from (finding for each in admission.dropped for finding in each.findings)


def _part(values: Mapping[Setting, str], kind: str) -> dict[str, bool]:
    """The switches of a kind, by name."""
    return {
        name.removeprefix(f"{kind} "): value in ("on", "true")
        for name, value in values.items()
        if name.startswith(f"{kind} ")
    }

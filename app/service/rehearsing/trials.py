"""Which setting a change of a release comes from: the other world with some settings as they were.

Each trial is a run of the recorded inputs, as the two worlds of a rehearsal are; what it shows is
compared with the world as it was, and `attribution` says which trial is next.
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
from app.domain.log import HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.service import diffing
from app.service.rehearsing.runs import World, Worlds
from app.service.replays.replaying import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What trials are made of: both worlds, and what no trial can say anything about.

    `unlike` are uids of pods and claims that are decided otherwise than recorded anyway. At most
    `runs_max` trials are made.
    """

    worlds: Worlds
    before: World
    after: World
    unlike: frozenset[str]
    bounds: DiffBounds
    runs_max: int

    async def search(self, findings: Iterable[Finding], progress: Progress) -> SettingsSearch:
        """The settings that each finding comes from."""
        search = SettingsSearch(
            settings=attribution.differing(*self._values()),
            findings=tuple(dict.fromkeys(findings)),
            runs_max=self.runs_max,
        )
        steps = search.steps()
        try:
            back = next(steps)
            while True:
                runs = Revision(search.runs), Revision(self.runs_max)
                progress("trying settings one by one, run", *runs)
                back = steps.send(await self.shown(back))
        except StopIteration:
            return search

    async def shown(self, back: frozenset[Setting]) -> frozenset[Finding]:
        """What shows in the other world with these settings as they were."""
        before = self.before
        world = await self.worlds.world(self.mixed(back), before.rules)
        fared = await diffing.drive(comparing.differing(before.side, world.side, self.bounds))
        changed = changes(before, world, fared, self.unlike)
        return frozenset(findings_of(fared, changed, world.admission))

    def mixed(self, back: frozenset[Setting]) -> HistoryInfo:
        """The settings of the other world with some as they were; each switch by its name."""
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

    def in_words(self, search: SettingsSearch) -> dict[Finding, Proof]:
        """What was found, with what the settings were and would be; no settings: unknown."""
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


def changes(before: World, after: World, fared: Iterable[Pair], unlike: frozenset[str]) -> Contents:
    """What controllers write otherwise, but for what follows from pods that fare otherwise."""
    pods = frozenset(
        course.uid for pair in fared for course in (pair.a, pair.b) if course is not None
    )
    objects = frozenset() if after.admission is None else after.admission.concerned
    following = Following(pods=pods, objects=objects)
    return contents.changed(
        before.run.trace, after.run.trace, following, after.rules.schemas, unlike
    )


def pod_finding(pair: Pair) -> Finding:
    """That a pod fares otherwise."""
    name, ordinal = pair.place
    return ("pod", name, str(ordinal))


def findings_of(
    fared: Iterable[Pair], changed: Contents, admission: Admission | None
) -> Iterator[Finding]:
    """What a world has that the world as it was has not."""
    yield from (pod_finding(pair) for pair in fared)
    yield from (("text", *each.words) for each in changed.texts)
    yield from (("field", *each.words) for each in changed.fields)
    if admission is not None:
        yield from (each.finding for each in admission.refused)
        yield from (finding for each in admission.dropped for finding in each.findings)


def _part(values: Mapping[Setting, str], kind: str) -> dict[str, bool]:
    """The switches of a kind by their names."""
    return {
        name.removeprefix(f"{kind} "): value in ("on", "true")
        for name, value in values.items()
        if name.startswith(f"{kind} ")
    }

"""The settings that cause the changes of a release, found by switching settings back.

Two worlds differ in a set of settings, and in findings. A trial is the second world with some of
the settings as in the first; findings that such a world does not show are caused by these settings.
For each finding, the set is reduced until no setting can be left out (delta debugging); each trial
counts for all findings. Nothing here runs a world: the search requests trials and is sent their
findings.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from app.domain.objects.profile import RELEASE_RULES

Finding: TypeAlias = tuple[str, ...]
"""A difference of a world from the first one: its kind (`pod`, `text`, …) and its subject."""

Setting: TypeAlias = str
"""A release, gate, quirk or rule of a release, named as in comparisons: `quirk r5`."""

RELEASE = "profile"
"""The release itself: the behaviour of its API that has no setting of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The settings that cause a finding.

    With all of them as in the first world it does not show. `is_minimal`: with any of them left
    out, it does. `is_smallest`: where there are several, each setting was tried alone and was not
    sufficient. Without settings, the cause is unknown: it shows even with all settings as in the
    first world.
    """

    settings: tuple[Setting, ...]
    is_minimal: bool = True
    is_smallest: bool = True


UNKNOWN = Attribution(settings=(), is_minimal=False, is_smallest=False)
"""The attribution of a finding that no settings cause, as far as trials show."""


@dataclass(slots=True)
class SettingsSearch:
    """The search over the settings that differ. `runs_max` bounds its trials.

    The first trial has all settings as in the first world. It may still show findings: the first
    world may be made in another way, or differ in something that is not a setting. Then the
    settings are switched back by halves, and a half that changes nothing is not divided. Only
    findings that no single setting removes take further trials. `unsure` are findings of the second
    world for which no settings are sought. `hidden` has, by the settings of a trial, findings that
    cannot be seen in it, which the caller also sends as shown: sets that rely on them are not
    called minimal. `is_cut_short` is true if the bound was reached.
    """

    settings: Sequence[Setting]
    findings: Sequence[Finding]
    runs_max: int
    unsure: frozenset[Finding] = frozenset()
    hidden: dict[frozenset[Setting], frozenset[Finding]] = field(default_factory=dict)
    runs: int = 0
    is_cut_short: bool = False
    attributions: dict[Finding, Attribution] = field(default_factory=dict)
    _shown: dict[frozenset[Setting], frozenset[Finding]] = field(default_factory=dict)

    @property
    def unattributed(self) -> list[Finding]:
        """The findings whose settings were not found or not narrowed down."""
        known = self.attributions
        return [
            finding
            for finding in dict.fromkeys(self.findings)
            if finding not in known or (known[finding].settings and not known[finding].is_minimal)
        ]

    def steps(self) -> Generator[frozenset[Setting], frozenset[Finding], None]:
        """Yields the settings to switch back, and is sent the findings of that world.

        Afterwards `attributions` has every finding; it is empty if no trial may be made.
        """
        if not self.findings:
            return
        whole = tuple(self.settings)
        self._shown[frozenset()] = frozenset(self.findings) | self.unsure
        try:
            without_all = yield from self._world(whole)
        except _TooManyRunsError:
            return
        theirs = [finding for finding in self.findings if finding not in without_all]
        unknown = frozenset(self.findings) & without_all
        self.attributions.update(dict.fromkeys(unknown, UNKNOWN))
        if not theirs:
            return
        with suppress(_TooManyRunsError):
            yield from self._find_active(theirs)
        for finding in theirs:
            self.attributions[finding] = yield from self._cut_down(finding)
        # Trials for later findings count for earlier ones.
        self.attributions = {
            finding: replace(cause, is_smallest=self._is_smallest(finding, cause))
            for finding, cause in self.attributions.items()
        }

    def _is_smallest(self, finding: Finding, cause: Attribution) -> bool:
        """Whether one setting is sufficient, or trials have shown that none is."""
        if len(cause.settings) == 1 or not cause.is_minimal:
            return cause.is_minimal
        return all(self._shows_alone(finding, setting) for setting in self.settings)

    def _shows_alone(self, finding: Finding, setting: Setting) -> bool:
        """Whether a trial with this setting alone as in the first world showed the finding."""
        alone = frozenset((setting,))
        return finding in self._shown.get(alone, ()) and finding not in self.hidden.get(alone, ())

    def _find_active(
        self, theirs: Sequence[Finding]
    ) -> Generator[frozenset[Setting], frozenset[Finding], None]:
        """Tries sets that may be enough: settings that change something when switched back.

        Some do so only beside others, so the rest is tried again with those back that are known.
        """
        active: frozenset[Setting] = frozenset()
        while any(self._known(finding) is None for finding in theirs) or not active:
            rest = tuple(name for name in self.settings if name not in active)
            if active and not any(finding in self._shown[active] for finding in theirs):
                return
            if rest:
                yield from self._divide(rest, active)
            more = {name for name in rest if self._changes(active | {name}, active)}
            if not more:
                return
            active |= more
            yield from self._world(active)

    def _divide(
        self, group: tuple[Setting, ...], others: frozenset[Setting]
    ) -> Generator[frozenset[Setting], frozenset[Finding], None]:
        """Tries the halves of a group with `others`, and divides those that change something.

        If the first half changes nothing, the change comes from the other one. If the first half
        has the effect of the whole group, the other one is not needed.
        """
        if len(group) == 1:
            yield from self._world(others.union(group))
            return
        middle = (len(group) + 1) // 2
        first, second = group[:middle], group[middle:]
        with_first, with_second = others.union(first), others.union(second)
        yield from self._world(with_first)
        if self._changes(with_first, others):
            yield from self._divide(first, others)
            if self._shown[with_first] == self._shown.get(others.union(group)):
                return
            yield from self._world(with_second)
            if not self._changes(with_second, others):
                return
        yield from self._divide(second, others)

    def _changes(self, back: frozenset[Setting], others: frozenset[Setting]) -> bool:
        """Whether a trial had other findings than one with fewer settings switched back."""
        return self._shown.get(back, self._shown[others]) != self._shown[others]

    def _cut_down(
        self, finding: Finding
    ) -> Generator[frozenset[Setting], frozenset[Finding], Attribution]:
        """The smallest sufficient set that trials have shown, reduced until it is minimal."""
        known = self._known(finding)
        if known is not None:
            return known
        gone = [back for back, shown in self._shown.items() if finding not in shown]
        least = min(gone, key=len)
        current, parts = tuple(name for name in self.settings if name in least), 2
        try:
            while len(current) > 1:
                smaller = yield from self._smaller(finding, current, parts)
                if smaller is None and parts >= len(current):
                    break
                if smaller is None:
                    parts = min(2 * parts, len(current))
                else:
                    is_part = len(smaller) <= len(current) - len(smaller)
                    parts = 2 if is_part else max(parts - 1, 2)
                    current = smaller
        except _TooManyRunsError:
            return Attribution(settings=current, is_minimal=False, is_smallest=False)
        if len(current) == 1:
            return Attribution(settings=current)
        fewer = [frozenset(current) - {each} for each in current]
        if any(finding in self.hidden.get(back, ()) for back in fewer):
            return Attribution(settings=current, is_minimal=False, is_smallest=False)
        with suppress(_TooManyRunsError):
            for setting in self.settings:
                if (yield from self._is_gone_alone(finding, setting)):
                    return Attribution(settings=(setting,))
        return Attribution(settings=current)

    def _known(self, finding: Finding) -> Attribution | None:
        """A single setting that a trial for another finding has shown to be sufficient."""
        for settings, shown in self._shown.items():
            if len(settings) == 1 and finding not in shown:
                return Attribution(settings=tuple(settings))
        return None

    def _smaller(
        self, finding: Finding, current: tuple[Setting, ...], parts: int
    ) -> Generator[frozenset[Setting], frozenset[Finding], tuple[Setting, ...] | None]:
        """A sufficient part of the settings, or the rest without a part; None for neither."""
        size = -(-len(current) // parts)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        for chunk in chunks:
            if (yield from self._is_gone(finding, chunk)):
                return chunk
        for chunk in chunks if len(chunks) > 2 else ():
            rest = tuple(each for each in current if each not in chunk)
            if (yield from self._is_gone(finding, rest)):
                return rest
        return None

    def _is_gone_alone(
        self, finding: Finding, setting: Setting
    ) -> Generator[frozenset[Setting], frozenset[Finding], bool]:
        """Whether a finding disappears with this setting alone as in the first world.

        Where it shows with more settings switched back, it probably shows with this one alone, so
        that takes no trial; such a set is not called the smallest.
        """
        if any(setting in back and finding in shown for back, shown in self._shown.items()):
            return False
        return (yield from self._is_gone(finding, (setting,)))

    def _is_gone(
        self, finding: Finding, settings: tuple[Setting, ...]
    ) -> Generator[frozenset[Setting], frozenset[Finding], bool]:
        """Whether a finding disappears with these settings as in the first world."""
        return finding not in (yield from self._world(settings))

    def _world(
        self, settings: Iterable[Setting]
    ) -> Generator[frozenset[Setting], frozenset[Finding], frozenset[Finding]]:
        """The findings of the world with these settings switched back; each is run once."""
        back = frozenset(settings)
        if back not in self._shown:
            if self.runs >= self.runs_max:
                self.is_cut_short = True
                raise _TooManyRunsError
            self.runs += 1
            self._shown[back] = yield back
        return self._shown[back]


class _TooManyRunsError(Exception):
    """The maximum number of trials is reached."""


def differing(before: Mapping[Setting, str], after: Mapping[Setting, str]) -> tuple[Setting, ...]:
    """The differing settings that can be switched individually: quirks, rules, gates, the release.

    The release counts only if the minor release differs. Differences between patch releases are all
    quirks.
    """
    names = [name for name in after if before.get(name) != after[name]]
    if minor(before[RELEASE]) == minor(after[RELEASE]):
        names = [name for name in names if name != RELEASE]
    kinds = ("quirk", "rule", "gate", RELEASE)
    return tuple(sorted(names, key=lambda name: kinds.index(name.partition(" ")[0])))


def mixed(
    before: Mapping[Setting, str], after: Mapping[Setting, str], back: Iterable[Setting]
) -> dict[Setting, str]:
    """The second world's settings, with some as in the first."""
    wanted = frozenset(back)
    return {name: before[name] if name in wanted else after[name] for name in after}


def minor(release: str) -> str:
    """The minor release: `1.36` for 1.36.2."""
    return ".".join(release.split(".")[:2])


def words(
    settings: Iterable[Setting], before: Mapping[Setting, str], after: Mapping[Setting, str]
) -> tuple[str, ...]:
    """The settings with their values before and after; rules of a release with their text."""
    return tuple(_setting_text(name, before, after) for name in settings)


def _setting_text(
    name: Setting, before: Mapping[Setting, str], after: Mapping[Setting, str]
) -> str:
    kind, _, rule = name.partition(" ")
    change = f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
    return f"{change} ({RELEASE_RULES[rule][1]})" if kind == "rule" else change

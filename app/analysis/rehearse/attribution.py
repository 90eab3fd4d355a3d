"""Which of several settings a change of a release comes from, found by switching them back.

Two worlds differ in a set of settings, and in findings. A trial is the second world with some of
the settings as in the first; a finding that such a world does not show comes from these. For each
finding the set is cut down until no setting can be left out (delta debugging), and trials count for
all findings. Nothing here runs a world: the search asks for trials and is told what they show.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.objects.profile import RELEASE_RULES

Finding: TypeAlias = tuple[str, ...]
"""What a world has and the first one has not: its kind (`pod`, `text`, …) and what it is about."""

Setting: TypeAlias = str
"""A release, gate, quirk or rule of a release, as comparisons name it: `quirk r5`."""

RELEASE = "profile"
"""The release itself: what its API serves, knows and refuses, and has no setting of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The settings that a finding comes from.

    With all of them as they were it does not show. `is_minimal`: with any of them left out it does,
    and where there are several, none of all settings does it alone as far as `is_smallest` says.
    No settings: what it comes from is unknown, as it shows with all of them as they were, too.
    """

    settings: tuple[Setting, ...]
    is_minimal: bool = True
    is_smallest: bool = True


UNKNOWN = Attribution(settings=(), is_minimal=False, is_smallest=False)
"""That no settings are behind a finding, as far as trials can tell."""


@dataclass(slots=True)
class SettingsSearch:
    """The search over the settings that differ. `runs_max` bounds its trials.

    The first trial has all settings as they were. It is no matter of course that it shows nothing:
    the first world may be made in another way, or differ in what is no setting.
    """

    settings: Sequence[Setting]
    findings: Sequence[Finding]
    runs_max: int
    runs: int = 0
    attributions: dict[Finding, Attribution] = field(default_factory=dict)
    _shown: dict[frozenset[Setting], frozenset[Finding]] = field(default_factory=dict)

    def steps(self) -> Generator[frozenset[Setting], frozenset[Finding], None]:
        """Yields the settings to switch back, and is sent what shows in that world.

        Afterwards `attributions` has every finding, or none where no trial may be made.
        """
        whole = tuple(self.settings)
        self._shown[frozenset()] = frozenset(self.findings)
        for finding in self.findings:
            try:
                is_theirs = yield from self._is_gone(finding, whole)
            except _TooManyRunsError:
                return
            self.attributions[finding] = (
                (yield from self._cut_down(finding, whole)) if is_theirs else UNKNOWN
            )

    def _cut_down(
        self, finding: Finding, whole: tuple[Setting, ...]
    ) -> Generator[frozenset[Setting], frozenset[Finding], Attribution]:
        known = self._known(finding)
        if known is not None:
            return known
        current, parts = whole, 2
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
        try:
            for setting in whole:
                if (yield from self._is_gone(finding, (setting,))):
                    return Attribution(settings=(setting,))
        except _TooManyRunsError:
            return Attribution(settings=current, is_smallest=False)
        return Attribution(settings=current)

    def _known(self, finding: Finding) -> Attribution | None:
        """One setting that a trial for another finding has shown to be enough."""
        for settings, shown in self._shown.items():
            if len(settings) == 1 and finding not in shown:
                return Attribution(settings=tuple(settings))
        return None

    def _smaller(
        self, finding: Finding, current: tuple[Setting, ...], parts: int
    ) -> Generator[frozenset[Setting], frozenset[Finding], tuple[Setting, ...] | None]:
        """A part without which the finding shows, or what is left without a part; None: neither."""
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

    def _is_gone(
        self, finding: Finding, settings: tuple[Setting, ...]
    ) -> Generator[frozenset[Setting], frozenset[Finding], bool]:
        """Whether a finding does not show with these settings as they were."""
        back = frozenset(settings)
        if back not in self._shown:
            if self.runs >= self.runs_max:
                raise _TooManyRunsError
            self.runs += 1
            self._shown[back] = yield back
        return finding not in self._shown[back]


class _TooManyRunsError(Exception):
    """The bound of trials is reached."""


def differing(before: Mapping[Setting, str], after: Mapping[Setting, str]) -> tuple[Setting, ...]:
    """The settings that differ and can be switched one by one: quirks, rules, gates, the release.

    The release counts where another one is imitated, not where only a patch level differs: all of
    that are quirks.
    """
    names = [name for name in after if before.get(name) != after[name]]
    if minor(before[RELEASE]) == minor(after[RELEASE]):
        names = [name for name in names if name != RELEASE]
    kinds = ("quirk", "rule", "gate", RELEASE)
    return tuple(sorted(names, key=lambda name: kinds.index(name.partition(" ")[0])))


def mixed(
    before: Mapping[Setting, str], after: Mapping[Setting, str], back: Iterable[Setting]
) -> dict[Setting, str]:
    """The second settings with some as in the first."""
    wanted = frozenset(back)
    return {name: before[name] if name in wanted else after[name] for name in after}


def minor(release: str) -> str:
    """`1.36` of 1.36.2."""
    return ".".join(release.split(".")[:2])


def words(
    settings: Iterable[Setting], before: Mapping[Setting, str], after: Mapping[Setting, str]
) -> tuple[str, ...]:
    """The settings with what they were and would be; rules of a release with what they say."""
    return tuple(_in_words(name, before, after) for name in settings)


def _in_words(name: Setting, before: Mapping[Setting, str], after: Mapping[Setting, str]) -> str:
    kind, _, rule = name.partition(" ")
    change = f"{name}: {before.get(name, 'none')} → {after.get(name, 'none')}"
    return f"{change} ({RELEASE_RULES[rule][1]})" if kind == "rule" else change

"""Rules about changes of pools: generations, times of incompleteness, attribute types."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.analysis.lint.devices import published_attributes, qualified, type_of
from app.analysis.lint.findings import FindingPlace, LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import LintedObject
from app.domain.devices import compiling, pools
from app.domain.devices.model import Slice
from app.domain.errors import InputError
from app.domain.values.fields import meta
from app.domain.values.identifiers import PoolId
from app.domain.values.timestamps import SECOND, Instant

JUMP = LintRule(
    id="generation-jump",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice over time",
    means="The generation of a pool rises by more than one: generations between were lost, or two "
    "writers publish the pool.",
    cure="Raise the generation by one with each change of the pool, from one writer.",
    reference="docs/parity/allocator.md 2.3",
)
BACK = LintRule(
    id="generation-back",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice over time",
    means="A slice goes back to an older generation of its pool: as long as a newer one is there, "
    "its devices are not allocated.",
    cure="Keep the generation over restarts of the driver, or read it from the slices there.",
    reference="docs/parity/allocator.md 2.3",
)
SPELLS = LintRule(
    id="pool-incomplete-for",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice over time",
    means="The pool is incomplete while its slices are written one by one: meanwhile requests for "
    "all its devices fail, and others see a part.",
    cure="Write the slices of a generation quickly after one another, the largest change first.",
    reference="docs/parity/allocator.md 2.4",
)
TYPE_CHANGED = LintRule(
    id="attribute-type-changed",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice over time",
    means="An attribute of a device changes its type: selectors written for the old type fail from "
    "then on, which ends the attempts to place their pods.",
    cure="Give the attribute another name when its type changes.",
    reference="docs/parity/allocator.md 5.1",
)
RULES = (JUMP, BACK, SPELLS, TYPE_CHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spell:
    begin: Instant
    end: Instant
    place: FindingPlace
    is_over: bool

    @property
    def seconds(self) -> float:
        return max(0, self.end - self.begin) / SECOND


@dataclass(slots=True, kw_only=True, eq=False)
class _PoolOverTime:
    id: PoolId
    slices: dict[str, Slice] = field(default_factory=dict)
    newest: int | None = None
    spells: list[_Spell] = field(default_factory=list)
    incomplete_since: Instant | None = None
    incomplete_at: FindingPlace | None = None

    def note(self, now: Instant, place: FindingPlace) -> None:
        """Records whether the pool is incomplete from now on."""
        newest = pools.newest(self.slices.values())
        is_whole = all(each.slice_count == len(newest) for each in newest)
        if not is_whole and self.incomplete_since is None:
            self.incomplete_since, self.incomplete_at = now, place
        elif is_whole:
            self.close(now, is_over=True)

    def close(self, now: Instant, *, is_over: bool) -> None:
        """Ends the current incomplete spell, if there is one."""
        if self.incomplete_since is None or self.incomplete_at is None:
            return
        self.spells.append(
            _Spell(begin=self.incomplete_since, end=now, place=self.incomplete_at, is_over=is_over)
        )
        self.incomplete_since = self.incomplete_at = None


@dataclass(slots=True, kw_only=True, eq=False)
class PoolsOverTime:
    """Follows every change of a slice, in order; `findings` has the broken rules."""

    _pools: dict[PoolId, _PoolOverTime] = field(default_factory=dict)
    _findings: list[LintFinding] = field(default_factory=list)
    _told: set[tuple[str, str]] = field(default_factory=set)
    _now: Instant = Instant(0)

    def see(self, subject: LintedObject, now: Instant) -> None:
        """Handles a slice that was created or changed."""
        self._now = max(self._now, now)
        try:
            published = compiling.slice_of(subject.tree)
        except InputError:
            return
        pool = self._pools.setdefault(published.pool, _PoolOverTime(id=published.pool))
        before = pool.slices.get(published.name)
        pool.slices[published.name] = published
        place = subject.at("spec.pool.generation")
        self._generation(pool, published, before, place)
        pool.note(now, place)
        if before is not None:
            self._types(before, published, subject)

    def forget(self, subject: LintedObject, now: Instant) -> None:
        """Handles a slice that was deleted; the subject is its last state."""
        self._now = max(self._now, now)
        name = meta.name(subject.tree)
        for pool in self._pools.values():
            if pool.slices.pop(name, None) is not None:
                pool.note(now, subject.at())

    def findings(self) -> Iterator[LintFinding]:
        """The broken rules, and for each pool how long it was incomplete."""
        yield from self._findings
        for pool in self._pools.values():
            pool.close(self._now, is_over=False)
            if pool.spells:
                yield _spells(pool)

    def _generation(
        self, pool: _PoolOverTime, published: Slice, before: Slice | None, place: FindingPlace
    ) -> None:
        if before is not None and published.generation < before.generation:
            message = f"from {before.generation} back to {published.generation}"
            self._findings.append(BACK.at(place, message))
            return
        if pool.newest is not None and published.generation > pool.newest + 1:
            message = f"from {pool.newest} to {published.generation} in pool {'/'.join(pool.id)}"
            self._findings.append(JUMP.at(place, message))
        pool.newest = max(published.generation, pool.newest or 0)

    def _types(self, before: Slice, after: Slice, subject: LintedObject) -> None:
        driver = after.pool[0]
        known = {device.id[2]: _types_of(device.tree, driver) for device in before.devices}
        for index, device in enumerate(after.devices):
            old = known.get(device.id[2], {})
            for name, value in published_attributes(device).items():
                full = qualified(driver, name)
                kind, was = type_of(value), old.get(full, "")
                if was and kind != was and (driver, full) not in self._told:
                    self._told.add((driver, full))
                    place = subject.at(f"spec.devices[{index}].attributes[{name}]")
                    message = f"{name} was of type {was} and is of type {kind}"
                    self._findings.append(TYPE_CHANGED.at(place, message))


def _types_of(tree: Mapping[str, object], driver: str) -> dict[str, str]:
    attributes = tree.get("attributes")
    items: Iterable[tuple[str, object]] = attributes.items() if isinstance(attributes, dict) else ()
    return {qualified(driver, name): type_of(value) for name, value in items}


def _spells(pool: _PoolOverTime) -> LintFinding:
    longest = max(pool.spells, key=lambda spell: spell.seconds)
    total = sum(spell.seconds for spell in pool.spells)
    times = "once" if len(pool.spells) == 1 else f"{len(pool.spells)} times"
    still = "" if pool.spells[-1].is_over else ", and still is at the end"
    message = (
        f"pool {'/'.join(pool.id)} was incomplete {times}, {longest.seconds:.3f} s at the longest "
        f"and {total:.3f} s in all{still}"
    )
    return SPELLS.at(longest.place, message)

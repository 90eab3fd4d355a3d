"""The evidence for and against hypotheses, besides the two traces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.proving.earlier_states import MakeAgain
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.variants import Switches
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """A setting of the control plane: its class of difference, and the switches that change it."""

    reason: str
    switches: Switches


def possible(
    others: Iterable[Switched],
    shown: Set[str],
    releases: Set[int] = frozenset(),
    oldest: int = 0,
) -> Iterator[Switched]:
    """Yields the switches that are possible where objects show these gates to be on.

    A switch that turns one of them off is not possible. A release in which one is off by default
    had it switched on. If the controllers name their minor `releases`, there was no other one. None
    is older than the `oldest` minor release that serves the versions in which objects were made.
    """
    for each in others:
        switches = each.switches
        if any(not switches.gates.get(gate, True) for gate in shown):
            continue
        if not switches.profile:
            yield each
            continue
        release = Profile(version=switches.profile)
        if release.minor < oldest or (releases and release.minor not in releases):
            continue
        on = Switches(gates={gate: True for gate in sorted(shown) if not release.enabled(gate)})
        if on.gates:
            yield Switched(reason=", ".join((each.reason, *on.words())), switches=switches | on)
        else:
            yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence in a recording, besides its trace, for and against hypotheses.

    `overused` maps the uids of claims whose allocation no order allows to the reason. `forbidden`
    maps the uids of claims whose allocation a taint forbids to whether the taint is of an existing
    rule. `chosen` are the switches that were set for this replay, reversed. `others` are those that
    the recorded control plane may have had. `rules_seen` is the one that decides whether rules are
    seen. `lacks` has what was not recorded. `impossible` maps pods and claims to recorded facts
    that no missing record and no wrong clock can explain. `paired_by_time` are the pods with a
    condition that only its instant assigns to an attempt. `waits` are those of the scheduler's
    requests, `scheduler` is its process, and `manager` that of the other controllers. `make_again`
    makes attempts again on earlier states of the log, where it can be read once more.
    """

    overused: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, bool] = field(default_factory=dict)
    chosen: Sequence[Switched] = ()
    others: Sequence[Switched] = ()
    rules_seen: Switched | None = None
    lacks: Lacks = field(default_factory=lambda: Lacks(()))
    impossible: Mapping[ObjectKey, str] = field(default_factory=dict)
    paired_by_time: Set[str] = frozenset()
    waits: Waits = field(default_factory=lambda: Waits((), ()))
    scheduler: Process = field(default_factory=lambda: Process(()))
    manager: Process = field(default_factory=lambda: Process(()))
    make_again: MakeAgain | None = None

    @property
    def by_rules(self) -> set[str]:
        """The claims whose allocation a taint of an existing rule forbids."""
        return {claim for claim, is_by_rule in self.forbidden.items() if is_by_rule}

    @property
    def turned(self) -> set[str]:
        """The classes that only switches turned before everything else can prove."""
        rules = (
            ()
            if self.rules_seen is None
            else (self.rules_seen.reason, DifferenceClass.IGNORED_RULES)
        )
        return {*(each.reason for each in self.chosen), *rules}

    @property
    def switched(self) -> set[str]:
        """The classes that the other switches can prove."""
        return {each.reason for each in self.others}

    def groups(self) -> list[Sequence[Switched]]:
        """The other switches as they are tried: quirks together, gates together, each release."""
        releases = [[each] for each in self.others if each.switches.profile]
        gates = [each for each in self.others if each.switches.gates and not each.switches.profile]
        quirks = [each for each in self.others if each.switches.quirks]
        return [group for group in (quirks, gates, *releases) if group]

"""The control planes of decide replays, under the switches of each run."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

import msgspec

from app.adapters.uids import DerivedUids
from app.analysis.replay.proving.evidence import Switched
from app.analysis.replay.variants import Switches
from app.analysis.replay.writers import BESIDE, DECIDED, IN_PLACE
from app.analysis.views import compiler_of, features_of
from app.bootstrap import history_settings
from app.bootstrap.deciders import deciders_of
from app.bootstrap.rules import rules_of
from app.domain.allocation.quirks import Quirks
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.scheduling.scheduling_cycle.attempt import BindDelay, TieBreak
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.rules import Rules
from app.domain.values import json_tree
from app.ports import UidSource
from app.service.replays.deciding.replay import Proofs
from app.service.replays.deciding.runs import ControlPlane
from app.service.replays.replaying import ReplayBounds
from app.settings import Settings

_NOT_TRIED = frozenset(("c8", "c22", "c24"))
"""Quirks that have hypotheses of their own."""

_TRIED_GATES = tuple(
    gate
    for gate in profiles.GATES
    if gate.startswith(("DRA", "Scheduler", "NominatedNodeName", "PodTopologyLabels"))
)


class ControlPlanes:
    """Makes rules and controllers for runs of one history; a `ControlPlane`.

    The controllers in `names` run. With `keeps_causes`, decisions hold the causes of refusals too.
    """

    def __init__(
        self,
        info: HistoryInfo,
        *,
        names: Collection[str] = DECIDED,
        seed: int | None = None,
        keeps_causes: bool = False,
    ) -> None:
        self._info = info
        self._off = frozenset(registry.NAMES) - frozenset(names)
        self._seed = info.seed if seed is None else seed
        self._keeps_causes = keeps_causes
        self._rules: dict[str, Rules] = {}

    def rules(self, switches: Switches) -> Rules:
        """The rules of objects; made once per choice of release and gates."""
        info = self._with(switches)
        key = repr((info.settings.get("profile"), info.settings.get("gates"), _c24(info)))
        if key not in self._rules:
            self._rules[key] = rules_of(info)
        return self._rules[key]

    def controllers(
        self,
        switches: Switches,
        tie_break: TieBreak,
        pace: Pace | None,
        bind_delay: BindDelay | None,
        profiles: frozenset[str] = frozenset(),
    ) -> Sequence[Reconciler]:
        """New reconcilers of the controllers that decide again."""
        profile = self.rules(switches).profile
        options = registry.options_from(self._with(switches).settings)
        if bind_delay is None or not self._info.is_recorded:
            # A delay of its own also holds for bindings that its history does not show.
            bind_delay = options.bind_delay or bind_delay
        return reconcilers.controllers(
            profile,
            features_of(profile),
            compiler_of(profile),
            replace(
                options,
                off=options.off | self._off,
                tie_break=tie_break,
                pace=pace,
                bind_delay=bind_delay,
                # Without a delay of its own, a live history has them in one append.
                joins_acts=not self._info.is_recorded and options.bind_delay is None,
                summary=options.summary if self._keeps_causes else None,
                profiles=profiles,
            ),
        )

    def uids(self) -> UidSource:
        """Uids derived from the seed."""
        return DerivedUids(self._seed)

    def _with(self, switches: Switches) -> HistoryInfo:
        settings = dict(self._info.settings)
        settings["gates"] = {**json_tree.mapping(settings, "gates"), **switches.gates}
        settings["quirks"] = {**json_tree.mapping(settings, "quirks"), **switches.quirks}
        if switches.profile:
            settings["profile"] = switches.profile
        return msgspec.structs.replace(self._info, settings=settings)


class ForkPlanes:
    """The control planes of forks in which recorded inputs continue; a `Planes`."""

    def __init__(self, settings: Settings) -> None:
        # Switches in the settings apply to the fork, not to the recording.
        self._settings = replace(settings, gates="", quirks="")
        self.bounds = replay_bounds(settings)

    def recorded(self, info: HistoryInfo) -> tuple[ControlPlane, Proofs]:
        """The control plane of the recording, and the hypotheses that may make it agree."""
        return ControlPlanes(info), proofs_of(self._settings, info, info)

    def altered(self, info: HistoryInfo, seed: int) -> ControlPlane:
        """The recorded controllers, plus others that a recording lacks."""
        names = (*DECIDED, *BESIDE, *IN_PLACE)
        return ControlPlanes(info, names=names, seed=seed, keeps_causes=True)


def replay_bounds(settings: Settings) -> ReplayBounds:
    """The bounds of replays."""
    return ReplayBounds(
        page_max=settings.projector_batch_max,
        events_max=settings.decide_events_max,
        shared_events_max=settings.decide_shared_events_max,
        kept_bytes_max=settings.verify_kept_bytes_max,
    )


def proofs_of(settings: Settings, info: HistoryInfo, stored: HistoryInfo) -> Proofs:
    """The hypotheses to try for a replay of `info`: the history `stored` with switches changed."""
    profile = profiles.from_settings(info.settings)
    return Proofs(
        chosen=tuple(_chosen(settings, info, stored)),
        others=tuple(_others(info)),
        rules_seen=_rules_seen(profile),
        runs_max=settings.decide_runs_max,
        events_max=settings.decide_proof_events_max,
        deciders=partial(deciders_of, info),
    )


def _rules_seen(profile: profiles.Profile) -> Switched | None:
    """The switch that reverses quirk c24; None for releases other than 1.36.

    Releases of 1.36 have the defect, but the recorded control plane may have had its repair.
    """
    if profile.version != "1.36":
        return None
    turned = not profile.ignores_rules
    return Switched(reason=f"quirk c24={_word(turned)}", switches=Switches(quirks={"c24": turned}))


def _chosen(settings: Settings, info: HistoryInfo, stored: HistoryInfo) -> Iterator[Switched]:
    """The given switches that have an effect, each reversed."""
    quirks = _quirks_of(_without(info, "quirks"))
    for name, value in history_settings.switches(settings.quirks.lower(), place="--quirk").items():
        if name in quirks and quirks[name] is not value:
            turned = Switches(quirks={name: quirks[name]})
            yield Switched(reason=f"switch --quirk {name}={_word(value)}", switches=turned)
    default = profiles.from_settings(_without(info, "gates").settings)
    for name, value in history_settings.switches(settings.gates, place="--gate").items():
        if default.enabled(name) is not value:
            turned = Switches(gates={name: not value})
            yield Switched(reason=f"switch --gate {name}={_truth(value)}", switches=turned)
    profile = json_tree.text(info.settings, "profile")
    before = json_tree.text(stored.settings, "profile")
    if before and profile != before:
        turned = Switches(profile=before)
        yield Switched(reason=f"switch --profile {profile}", switches=turned)


def _others(info: HistoryInfo) -> Iterator[Switched]:
    """Other releases, gates and quirks that the recorded control plane may have had."""
    profile = profiles.from_settings(info.settings)
    for version in profiles.VERSIONS:
        if version != profile.version:
            yield Switched(reason=f"profile {version}", switches=Switches(profile=version))
    for gate in _TRIED_GATES:
        turned = not profile.enabled(gate)
        yield Switched(
            reason=f"gate {gate}={_truth(turned)}", switches=Switches(gates={gate: turned})
        )
    for name, value in sorted(_quirks_of(info).items()):
        if name not in _NOT_TRIED:
            switches = Switches(quirks={name: not value})
            yield Switched(reason=f"quirk {name}={_word(not value)}", switches=switches)


def _quirks_of(info: HistoryInfo) -> Mapping[str, bool]:
    """All quirks with a switch, with their values under these settings."""
    profile = profiles.from_settings(info.settings)
    options = registry.options_from(info.settings)
    mine = registry.quirks_of(profile, options)
    theirs = registry.allocator_quirks_of(profile, options)
    return {
        **{each.name: getattr(theirs, each.name) for each in fields(Quirks)},
        **{each.name: getattr(mine, each.name) for each in fields(ControllerQuirks)},
    }


def _without(info: HistoryInfo, part: str) -> HistoryInfo:
    settings = {name: value for name, value in info.settings.items() if name != part}
    return msgspec.structs.replace(info, settings=settings)


def _c24(info: HistoryInfo) -> object:
    return json_tree.get(info.settings, "quirks", "c24")


def _word(value: bool) -> str:
    return "on" if value else "off"


def _truth(value: bool) -> str:
    return "true" if value else "false"

"""The engine for runs of histories under changed settings: their rules and controllers."""

from collections.abc import Sequence

import msgspec

from app.adapters.uids import DerivedUids
from app.analysis.replay.variants import Switches
from app.analysis.replay.writers import DECIDED
from app.analysis.views import compiler_of, features_of
from app.bootstrap import process_settings
from app.bootstrap.rules import rules_of
from app.domain.controllers import reconcilers, registry
from app.domain.controllers.plan import Reconciler
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.rules import Rules
from app.ports import UidSource


class Engines:
    """Makes rules once per release, gates and quirks, and controllers for each run.

    A run has at most `events_max` events, by the environment of the process that runs it.
    """

    def __init__(self) -> None:
        self._rules: dict[str, Rules] = {}
        self.events_max = process_settings.settings().trial_events_max

    def settings_under(
        self, info: HistoryInfo, switches: Switches, off: frozenset[str]
    ) -> HistoryInfo:
        """The history with switches changed and controllers off.

        Only controllers of decide replays stay on: the writes of others are used as recorded.
        """
        settings = dict(info.settings)
        controllers = dict(settings.get("controllers", {}))
        there = frozenset(controllers.get("off", ()))
        controllers["off"] = sorted(there | off | (frozenset(registry.NAMES) - frozenset(DECIDED)))
        settings["controllers"] = controllers
        if gates := {**settings.get("gates", {}), **switches.gates}:
            settings["gates"] = gates
        if quirks := {**settings.get("quirks", {}), **switches.quirks}:
            settings["quirks"] = quirks
        if switches.profile:
            settings["profile"] = switches.profile
        return msgspec.structs.replace(info, settings=settings)

    def rules(self, info: HistoryInfo) -> Rules:
        """The rules of objects under the settings of a history."""
        key = repr([info.settings.get(name) for name in ("profile", "gates", "quirks")])
        if key not in self._rules:
            self._rules[key] = rules_of(info)
        return self._rules[key]

    def controllers(self, info: HistoryInfo) -> Sequence[Reconciler]:
        """New reconcilers of the controllers that are on."""
        profile = profiles.from_settings(info.settings)
        return reconcilers.controllers(
            profile,
            features_of(profile),
            compiler_of(profile),
            registry.options_from(info.settings),
        )

    def uids(self, info: HistoryInfo) -> UidSource:
        """Uids derived from the seed of the history."""
        return DerivedUids(info.seed)

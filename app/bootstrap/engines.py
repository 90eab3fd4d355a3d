"""Rules and controllers for runs of histories under changed settings; an `Engine`."""

from collections.abc import Sequence

import msgspec

from app.adapters.uids import DerivedUids
from app.analysis.replay.variants import Switches
from app.analysis.replay.writers import DECIDED
from app.analysis.views import compiler_of, features_of
from app.bootstrap.rules import rules_of
from app.domain.controllers import registry
from app.domain.controllers.plan import Reconciler
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.rules import Rules
from app.ports import UidSource


class Engines:
    """Makes rules once per release, gates and quirks, and controllers for each run."""

    def __init__(self) -> None:
        self._rules: dict[str, Rules] = {}

    def settings_under(
        self, info: HistoryInfo, switches: Switches, off: frozenset[str]
    ) -> HistoryInfo:
        """The history with switches turned and controllers off. Only those that a decide replay
        has run: what others wrote is taken over as recorded."""
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
        """The rules of objects."""
        key = repr([info.settings.get(name) for name in ("profile", "gates", "quirks")])
        if key not in self._rules:
            self._rules[key] = rules_of(info)
        return self._rules[key]

    def controllers(self, info: HistoryInfo) -> Sequence[Reconciler]:
        """Fresh reconcilers of the controllers that are not off."""
        profile = profiles.from_settings(info.settings)
        return registry.controllers(
            profile,
            features_of(profile),
            compiler_of(profile),
            registry.options_from(info.settings),
        )

    def uids(self, info: HistoryInfo) -> UidSource:
        """Uids that follow from the seed of the history."""
        return DerivedUids(info.seed)

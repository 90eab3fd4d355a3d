"""The rules of a history's scheduler: its release, gates and quirks."""

from app.analysis.views import features_of
from app.domain.controllers import registry
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import HistoryInfo
from app.domain.objects.profile import Profile


def of(info: HistoryInfo, profile: Profile, compiler: SelectorCompiler) -> SchedulerRules:
    """The rules by which a history's pods are scheduled."""
    options = registry.options_from(info.settings)
    return SchedulerRules(
        gates=profile,
        features=features_of(profile),
        compiler=compiler,
        quirks=registry.quirks_of(profile, options),
        allocator_quirks=registry.allocator_quirks_of(profile, options),
        binding_timeout=options.binding_timeout,
        profiles=info.scheduler_profiles,
        checks_volumes=options.checks_volumes,
    )

"""The deciders that decide a history again, made from its settings."""

from app.analysis.verify.parts import Deciders
from app.analysis.views import compiler_of, features_of
from app.bootstrap.rules import rules_of
from app.domain.controllers import reconcilers, registry
from app.domain.log import HistoryInfo


def deciders_of(info: HistoryInfo) -> Deciders:
    """New deciders with the rules, the quirks and the controllers of a history."""
    rules = rules_of(info)
    compiler = compiler_of(rules.profile)
    options = registry.options_from(info.settings)
    return Deciders(
        rules=rules,
        controllers=reconcilers.controllers(
            rules.profile, features_of(rules.profile), compiler, options
        ),
        compiler=compiler,
        quirks=registry.allocator_quirks_of(rules.profile, options),
    )

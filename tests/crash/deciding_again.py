"""Makes every decision of a log again from what it observed, and compares it with the recorded one.

This compares the product with itself: it shows that decisions depend on the log alone, not that
they are right. `judging`, which shares no code with the product, checks that.
"""

from collections.abc import Sequence

from app.analysis.verify.redecide import DecisionChecker
from app.analysis.views import LiveViews, compiler_of, features_of
from app.bootstrap.rules import rules_for
from app.domain.controllers import reconcilers
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Event
from app.domain.objects.profile import Profile


def check_decisions(events: Sequence[Event], profile: Profile, options: ControllerOptions) -> None:
    """Checks that every decision made again equals the recorded one, including its effects."""
    views = LiveViews(profile)
    controllers = reconcilers.controllers(
        profile, features_of(profile), compiler_of(profile), options
    )
    checker = DecisionChecker(controllers, views, rules_for(profile))
    observers: dict[int, list[Event]] = {}
    for event in events:
        if event.type == "DecisionRecorded":
            observers.setdefault(event.stamp.observed, []).append(event)
    for event in events:
        checker.decide_again(observers.pop(views.revision, ()))
        checker.before(event)
        views.fold(event)
        checker.after(event)
    for compared in checker.result(is_whole=True):
        assert compared.differences == (), compared.differences[0]

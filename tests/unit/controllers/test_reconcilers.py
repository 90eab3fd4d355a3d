"""The makers of controllers, and the names in the registry that stand for them."""

from app.domain.allocation import Features
from app.domain.controllers import event_expiry, reconcilers, registry, rule_status
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.objects.profile import Profile


def test_each_name_in_the_registry_has_a_maker_in_its_order() -> None:
    assert tuple(reconcilers.MAKERS) == registry.NAMES


def test_controllers_are_made_under_their_own_names() -> None:
    made = {
        name: reconcilers.controller(
            name, Profile(), Features(), CelCompiler(detailed_errors=True)
        ).name
        for name in registry.NAMES
    }
    assert made == {name: name for name in registry.NAMES}


def test_names_with_rules_of_their_own_are_those_of_their_controllers() -> None:
    assert registry.EVENT_EXPIRY == event_expiry.reconciler.NAME
    assert registry.RULE_STATUS == rule_status.reconciler.NAME

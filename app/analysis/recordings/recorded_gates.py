"""The gate of DeviceTaintRules in a recorded cluster, which no recording names.

A cluster that held rules, or served them, had their gate on, whatever its release has by default;
what the settings of the history say of the gate goes before. Every reader of a recording takes
this from here: imports, recorders, replays, forks and comparisons.
"""

from collections.abc import Iterable, Mapping

from app.domain.log import Event
from app.domain.objects.profile import RULES_GATE
from app.domain.values import api_resources, json_tree
from app.domain.values.json_tree import JsonObject


def leave_rules_open(settings: Mapping[str, object]) -> bool:
    """True for the settings of a recording that do not name the gate."""
    is_recorded = settings.get("recorded") is True
    return is_recorded and RULES_GATE not in json_tree.mapping(settings, "gates")


def hold_rules(events: Iterable[Event]) -> bool:
    """True when one of the events is of a DeviceTaintRule."""
    return any(
        (event.key.group, event.key.resource) == api_resources.DEVICE_TAINT_RULES
        for event in events
    )


def served_rules(settings: Mapping[str, object]) -> JsonObject:
    """The settings of a cluster that served rules: the gate is on unless they name it."""
    gates = json_tree.mapping(settings, "gates")
    return {**settings, "gates": {**gates, RULES_GATE: gates.get(RULES_GATE, True)}}

"""Which gates a recorded cluster had, as far as its objects and its settings say."""

import pytest

from app.analysis.recordings import recorded_gates
from app.domain.objects.profile import RULES_GATE


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        ({"recorded": True}, True),
        ({"recorded": True, "gates": {}}, True),
        ({"recorded": True, "gates": {"DRAConsumableCapacity": True}}, True),
        ({"recorded": True, "gates": {RULES_GATE: False}}, False),
        ({"recorded": True, "gates": {RULES_GATE: True}}, False),
        ({"gates": {}}, False),
    ],
)
def test_only_a_recording_that_does_not_name_the_gate_leaves_it_open(settings, is_open):
    assert recorded_gates.leave_rules_open(settings) is is_open


@pytest.mark.parametrize(
    ("gates", "served"),
    [
        (None, {RULES_GATE: True}),
        ({"DRAConsumableCapacity": False}, {"DRAConsumableCapacity": False, RULES_GATE: True}),
        ({RULES_GATE: False}, {RULES_GATE: False}),
    ],
)
def test_a_cluster_that_served_rules_had_their_gate_on_unless_its_settings_name_it(gates, served):
    settings = {"profile": "1.35"} if gates is None else {"profile": "1.35", "gates": gates}
    assert recorded_gates.served_rules(settings) == {"profile": "1.35", "gates": served}
    assert settings.get("gates") == gates, "the stored settings stay as they are"

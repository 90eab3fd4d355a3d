"""A fact beside a refusal is shown where it holds, and not in a world that differs in it alone."""

import json
import re

import pytest

from tests.web import invented, night_incidents, thread_incidents
from tests.web.test_named_causes import why

ROWS = [
    (night_incidents.driver_crash_loops, "CrashLoopBackOff", "ContainerCreating",
     "on that node fails"),
    (night_incidents.slice_selects_a_label_that_is_misspelled, 'topology.kubernetes.io/zone"',
     'x.test/place"', r"has topology\.kubernetes\.io/zone="),
    (night_incidents.release_is_compared_as_text, '"string": "570.12"', '"string": "beta"',
     "compared character by character"),
    (night_incidents.node_was_registered_anew, '"delete": "node/', '"delete": "namespace/',
     "made anew"),
    (night_incidents.drivers_write_one_attribute_in_two_types, '{"int": 0}', '{"string": "1"}',
     r"\((int|string)\)"),
    (night_incidents.class_is_misspelled, "gpu-lagre-682", "unlike", "do you mean"),
    (night_incidents.toleration_is_misspelled, "x.test/miantenance", "y.org/power", "tolerates"),
    (night_incidents.driver_taints_a_card_after_an_error, "NoSchedule", "None",
     r"taints device \S+/x"),
    (night_incidents.new_node_has_no_driver, '"nodeName": "old682"', '"allNodes": true',
     "no slice of"),
    (night_incidents.node_is_full_of_pods, '"pods": "3"', '"pods": "9"', "pods at a time"),
    (thread_incidents.init_container_wants_most, '{"cpu": "2"}', '{"cpu": "65"}', "init container"),
    (thread_incidents.runtime_adds_its_overhead, '"cpu": "4"', '"memory": "4"', "overhead"),
    (thread_incidents.limit_range_sets_the_request, '"requests": {}', '"requests": {"cpu": "48"}',
     "LimitRange"),
    (thread_incidents.runtime_chooses_its_nodes, '"runtimeClassName": "kata237"',
     '"nodeSelector": {"x.test/runtime682": "true"}',
     "RuntimeClass"),
    (thread_incidents.leader_waits_itself, '"role": "leader237"}}, "spec"',
     '"role": "other"}}, "spec"', "waits for one"),
    (thread_incidents.class_names_no_extended_resource, '"spec": {"selectors"',
     '"spec": {"extendedResourceName": "x.test/gpu237", "selectors"', "stands for no resource"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "old", "new", "fact"), ROWS, ids=[row[0].__name__ for row in ROWS]
)
async def test_fact_is_left_out_in_a_world_without_it(make, old, new, fact):
    made = make(invented.Names(1))
    told = await why(made.steps, f"pod/{made.about}", off=made.off)
    assert re.search(fact, told), told
    text = json.dumps(made.steps)
    assert old in text, text
    steps = json.loads(text.replace(old, new))
    if "namespace/" in new:
        steps = [step for step in steps if not step.get("delete", "").startswith("namespace/")]
    assert not re.search(fact, await why(steps, f"pod/{made.about}", off=made.off))

"""Incidents whose cause `why` had and the first finding lacked, as strangers made them."""

from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import Invented, ask, claim, node, pod, slice_of
from tests.web.reported_incidents import lab, one


def node_came_back_under_another_name(new):
    """The slice of a node stays behind when the node is deleted and made under another name."""
    driver, name = f"{new('d')}.test", new("renamed")
    return Invented(
        about="job",
        told=(r"node n, which slice \S+ is for, was deleted, by",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"delete": "node/n"},
            {"apply": [node(name)]},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def counters_are_in_another_pool(new):
    """Devices draw on a counter set that only another pool declares."""
    driver, name = f"{new('d')}.test", new("memory")
    drawn = [{"counterSet": name, "counters": {"memory": {"value": "40Gi"}}}]
    declared = [{"name": name, "counters": {"memory": {"value": "80Gi"}}}]
    devices = [{"name": "x", "consumesCounters": drawn}]
    other = slice_of("counters", driver, "other", [], nodeName="n", sharedCounters=declared)
    del other["spec"]["devices"]
    return Invented(
        about="job",
        told=(rf"counter set {name} not found: pool {driver}/n has no counter set",),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", devices, nodeName="n"))},
            {"apply": [other, claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def gate_is_lifted_of_one_pod_only(new):
    """A pod keeps the gate that was removed from the pod beside it."""
    driver, gate = f"{new('d')}.test", f"{new('queue')}.test/quota"
    first, job = (pod(name, "lab", claim="want") for name in ("first", "job"))
    for each in (first, job):
        each["spec"]["schedulingGates"] = [{"name": gate}]
    lifted = {"spec": {"schedulingGates": None}}
    return Invented(
        about="job",
        told=(rf"gate {gate} was set with the pod, by",
              rf"gate {gate} was removed from pod lab/first, by .{{0,60}} nobody has removed it"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), first, job]},
            {"wait": 5},
            {"patch": lifted, "of": "pod/lab/first"},
            {"wait": 5},
        ),
    )  # fmt: skip


def words_of_the_kubelet_are_gone(new):
    """A driver has left its node; the Event that said so has expired, and the pod waits on."""
    driver = f"{new('d')}.test"
    words = f"Failed to prepare dynamic resources: DRA driver {driver} is not registered"
    said = told_by_kubelet(new, "job", "FailedPrepareDynamicResources", words)
    return Invented(
        about="job",
        told=(rf"the kubelet of node n said, 14 times: FailedPrepareDynamicResources: {words}",
              r"its Event was deleted at 2026-01-02T"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [said]},
            {"wait": 3600},
            {"delete": f"event/lab/{said['metadata']['name']}"},
            {"wait": 5},
        ),
    )  # fmt: skip


TOLD = (words_of_the_kubelet_are_gone,)
"""Incidents whose words stand in `why` alone."""

LEFT = (
    node_came_back_under_another_name,
    counters_are_in_another_pool,
    gate_is_lifted_of_one_pod_only,
)
"""Incidents whose first finding has all words of the cause."""

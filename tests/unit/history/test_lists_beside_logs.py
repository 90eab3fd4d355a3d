"""Lists beside an audit log: what of the log they show to be gone, and what they leave open."""

import json
import re

import pytest

from app.bootstrap.rules import rules_for
from app.domain.log.records import Loss, Op
from app.domain.objects.profile import Profile
from tests.unit.history.worlds import CLAIMS, PODS, audit, brief, read_records, tree, write_lines

NODES = ("", "v1", "nodes", "Node")


def claim(name, rv, namespace="a", **parts):
    return tree(CLAIMS, name, namespace, rv=rv, **parts)


def pod(name, rv, namespace="a", labels=None, node="n", phase="Running"):
    metadata = {"labels": labels} if labels else {}
    parts = {"spec": {"nodeName": node}, "status": {"phase": phase}}
    return tree(PODS, name, namespace, rv=rv, metadata=metadata, **parts)


def node(name, rv):
    shown = tree(NODES, name, rv=rv)
    del shown["metadata"]["namespace"]
    return shown


TYPES = {"Pod": PODS, "ResourceClaim": CLAIMS, "Node": NODES}


def line(verb, shown):
    metadata = shown["metadata"]
    return audit(
        verb,
        shown,
        type_=TYPES[shown["kind"]],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        second=int(metadata["resourceVersion"]),
    )


def listed(*items, kind="List", **metadata):
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "items": items}


def records(folder, log, *lists):
    paths = [write_lines(folder / "audit.log", log)]
    for number, shown in enumerate(lists):
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(shown))
    return read_records(*paths)


def concluded(folder, log, *lists):
    return {
        (each.op.value, each.resource, each.namespace, each.name)
        for each in records(folder, log, *lists)
        if each.op in (Op.DELETED, Op.GAP)
    }


ONE, TWO = pod("one", 3), pod("two", 9)
LOG = [line("create", each) for each in (ONE, claim("one", 4), pod("x", 5, "b"))]
OTHERS = claim("one", 4), pod("x", 5, "b")
GONE = {("DELETED", "pods", "a", "one")}
OPEN = {("GAP", "pods", "a", "one")}
WEB, DATA = {"app": "web"}, {"app": "data"}
LABELLED = [line("create", pod("one", 3, labels=WEB)), line("create", pod("x", 5, "b", labels=WEB))]


@pytest.mark.parametrize(
    ("log", "shown", "expected"),
    [
        (LOG, listed(*OTHERS, pod("two", 9)), GONE),
        (LOG, listed(*OTHERS), GONE),
        # Of one namespace: nothing is said of another one.
        (
            LOG,
            listed(pod("x", 5, "b"), pod("y", 9, "b")),
            {("GAP", "pods", "a", ""), ("GAP", "resourceclaims", "", "")},
        ),
        (LOG, listed(claim("one", 4), pod("two", 9)), {("GAP", "pods", "b", ""), *OPEN}),
        # A server lists what it is asked for, but nobody asks for several by name.
        (
            LOG[:1],
            listed(TWO, pod("x", 9, phase="Failed"), kind="PodList", resourceVersion="9"),
            GONE,
        ),
        (LOG[:1], listed(pod("two", 9), kind="PodList", resourceVersion="9"), OPEN),
        # By a label.
        (LOG[::2], listed(pod("x", 5, "b", WEB), pod("two", 9, "a", WEB)), OPEN),
        (LABELLED, listed(pod("x", 5, "b", WEB, phase="Failed"), pod("y", 9, "a", DATA)), GONE),
        (LABELLED, listed(pod("x", 5, "b", DATA), pod("two", 9, "a", DATA)), OPEN),
        # By a node, or a phase, of which there is none in a list of other kinds, too.
        (
            LOG[::2],
            listed(pod("x", 5, "b", node="m"), pod("two", 9, node="m", phase="Pending")),
            OPEN,
        ),
        (LOG[::2], listed(pod("x", 5, "b", node="m"), pod("two", 9)), OPEN),
        (LOG[::2], listed(pod("x", 5, "b"), pod("two", 9, phase="Pending")), GONE),
        # It may have been made after the list of pods, and before that of claims.
        (
            [*LOG[1:], line("create", pod("one", 7))],
            listed(pod("x", 5, "b"), claim("one", 4), claim("two", 9)),
            OPEN,
        ),
        # Nodes are in no list.
        (
            [line("create", node("n", 2)), *LOG[1:]],
            listed(*OTHERS, claim("two", 9)),
            {("GAP", "nodes", "", "")},
        ),
    ],
    ids=[
        "of all namespaces",
        "as old as the log",
        "of another namespace",
        "of its namespace, maybe by names",
        "of its namespace by a server",
        "of one object by a server",
        "by a label that it lacks",
        "by no label",
        "by a label that it has with another value",
        "by a node",
        "by a phase",
        "by no phase",
        "made too late",
        "of other kinds",
    ],
)
def test_list_shows_what_is_gone_or_leaves_it_open(log, shown, expected, tmp_path):
    assert concluded(tmp_path, log, shown) == expected


def test_log_that_goes_on_leaves_nothing_open(tmp_path):
    later = [*LOG, line("update", claim("one", 12))]
    assert concluded(tmp_path, later, listed(pod("x", 5, "b"), pod("y", 9, "b"))) == set()


def test_object_that_the_log_lost_is_gone_in_the_middle(tmp_path):
    later = [*LOG, line("create", pod("late", 12))]
    ends = brief(records(tmp_path, later, listed(*OTHERS, pod("two", 9))))
    assert ends[-3:] == [("BASELINE", "two"), ("DELETED", "one"), ("ADDED", "late")]


def test_list_without_an_object_that_was_there_shows_no_other_end(tmp_path):
    """It was made before pod x changed, and so before the other one did, which it lacks."""
    later = [*LOG, *(line("update", each) for each in (pod("x", 12, "b"), pod("more", 14)))]
    later.insert(0, line("create", pod("more", 2)))
    assert concluded(tmp_path, later, listed(*OTHERS, pod("two", 9))) == set()


def test_object_that_a_later_list_shows_is_not_gone(tmp_path):
    first, second = listed(*OTHERS, pod("two", 9)), listed(ONE, *OTHERS, pod("two", 10))
    assert concluded(tmp_path, LOG, first, second) == set()


def test_object_that_only_the_first_of_two_lists_shows_is_gone(tmp_path):
    first, second = listed(ONE, *OTHERS, pod("two", 9)), listed(ONE, *OTHERS, pod("three", 10))
    assert concluded(tmp_path, LOG, first, second) == {("DELETED", "pods", "a", "two")}


def test_list_of_which_a_page_is_missing_shows_no_end(tmp_path):
    page = {"kind": "PodList", "resourceVersion": "9", "continue": "next", "remainingItemCount": 1}
    ends = concluded(tmp_path, LOG, listed(pod("x", 5, "b"), pod("two", 9), **page))
    assert ("DELETED", "pods", "a", "one") not in ends


def test_object_that_an_eviction_ended_is_not_gone_twice(tmp_path):
    """Nothing holds a pod without a node: it goes with the request."""
    waiting = pod("one", 3, node="", phase="Pending")
    eviction = audit(
        "create",
        {"kind": "Status"},
        type_=PODS,
        name="one",
        namespace="a",
        subresource="eviction",
        second=6,
        request={"kind": "Eviction", "metadata": {"name": "one"}},
    )
    log = [line("create", waiting), *LOG[1:], eviction]
    kept = records(tmp_path, log, listed(*OTHERS, pod("two", 9)))
    assert [each.op for each in kept if each.name == "one" and each.resource == "pods"] == [
        Op.ADDED,
        Op.DELETED,
    ]


def row(status, node="<none>"):
    titles = "NAME   READY   STATUS        RESTARTS   AGE   IP       NODE"
    cells = f"p1     0/1     {status.ljust(11)}   0          5m    <none>   {node}"
    return f"$ kubectl get pods -n default -o wide\n{titles}\n{cells}\n"


def claim_row(state):
    titles = f"NAME   {'STATE'.ljust(18)}   AGE"
    return f"$ kubectl get resourceclaims -n default\n{titles}\nc1     {state.ljust(18)}   5m\n"


def claim_page(version, device=""):
    lines = [
        "Name:         c1",
        "Namespace:    default",
        "API Version:  resource.k8s.io/v1",
        "Kind:         ResourceClaim",
        "Metadata:",
        f"  Resource Version:  {version}",
        "  UID:               uid-c1",
    ]
    if device:
        lines += ["Status:", "  Allocation:", "    Devices:", "      Results:"]
        lines += [f"        Device:   {device}", "        Driver:   d", "        Pool:     p"]
        lines += ["        Request:  r"]
    return "".join(f"{line}\n" for line in lines)


BOUND = audit(
    "create",
    type_=PODS,
    name="p1",
    subresource="binding",
    request={"target": {"kind": "Node", "name": "n1"}},
    code=201,
    second=3,
)
MADE = [
    audit("create", tree(PODS, "p1", rv=3, status={"phase": "Pending"}), type_=PODS, second=1),
    audit("create", tree(CLAIMS, rv=4), second=2),
]
RESULTS = {
    "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-1"}]}
}
GIVEN = audit(
    "update", tree(CLAIMS, rv=7, status={"allocation": RESULTS}), subresource="status", second=4
)


def klog(node):
    line = 'I0102 03:04:05.000003       1 schedule_one.go:314] "Successfully bound pod to node"'
    return f'{line} pod="default/p1" node="{node}" evaluatedNodes=1\n'


def event(node, uid="uid-p1"):
    """An Event as `kubectl get events -o json` gives it."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": "p1.1",
                "namespace": "default",
                "uid": "e",
                "resourceVersion": "9",
            },
            "reason": "Scheduled",
            "message": f"Successfully assigned default/p1 to {node}",
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": uid},
        }
    )


def event_row(node):
    titles = "LAST SEEN   TYPE     REASON      OBJECT   MESSAGE"
    said = f"Successfully assigned default/p1 to {node}"
    cells = f"5m          Normal   Scheduled   pod/p1   {said}"
    return f"$ kubectl get events -n default\n{titles}\n{cells}\n"


GONE = audit("delete", tree(PODS, "p1", rv=8), type_=PODS, second=5)


@pytest.mark.parametrize(
    ("log", "printed", "fact"),
    [
        (MADE, row("Pending"), ""),
        (MADE, row("Running", "n1"), "the node n1"),
        ([*MADE, BOUND], row("Running", "n1"), ""),
        ([*MADE, BOUND], row("Pending"), ""),
        ([*MADE, BOUND], row("Running", "n2"), "the node n2"),
        ([*MADE, BOUND], row("Completed", "n1"), "the phase Succeeded"),
        ([*MADE, BOUND], row("Terminating", "n1"), "its deletion"),
        (MADE, claim_row("pending"), ""),
        (MADE, claim_row("allocated,reserved"), "its allocation"),
        ([*MADE, GIVEN], claim_row("allocated,reserved"), ""),
        ([*MADE, GIVEN], claim_row("pending"), ""),
        ([*MADE, GIVEN], claim_page(4), ""),
        ([*MADE, GIVEN], claim_page(7, "gpu-1"), ""),
        ([*MADE, GIVEN], claim_page(7, "gpu-2"), "the device d/p/gpu-2"),
        ([*MADE, GIVEN], claim_page(9, "gpu-1"), "version 9"),
        (MADE, klog("n1"), "the node n1"),
        (MADE, event("n1"), "the node n1"),
        (MADE, event("n1", uid="uid-of-another"), ""),
        (MADE, event_row("n1"), "the node n1"),
        ([*MADE, BOUND], klog("n1"), ""),
        ([*MADE, BOUND], event("n1"), ""),
        ([*MADE, GONE], event("n1"), ""),
        ([*MADE, GONE], klog("n1"), ""),
        ([MADE[1]], klog("n1"), ""),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
def test_what_is_printed_of_an_object_and_no_log_shows(tmp_path, log, printed, fact, is_first):
    path = tmp_path / ("a.txt" if is_first else "z.txt")
    path.write_text(printed)
    audited = write_lines(tmp_path / "audit.log", log)
    records = read_records(*sorted([path, audited]), rules=rules_for(Profile()))
    gaps = [record for record in records if record.op is Op.GAP and "no other" in record.message]
    said = [
        re.match("(?:kubectl printed|a log or an Event says) (.*?), ", each.message)[1]
        for each in gaps
    ]
    assert said == ([fact] if fact else [])
    if fact:
        assert gaps[0].name == ("p1" if "p1" in printed else "c1")
        assert [each.op for each in records if each.name == gaps[0].name][-1] is Op.GAP
        assert (Loss.NO_DELETE_STATE in gaps[0].losses) == (fact == "its deletion")

"""Pods whose causes differ only in the name of a claim are one finding."""

from app.analysis.chronicle import Chronicle
from app.analysis.findings import pods
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources
from tests.cluster import USER, Cluster
from tests.counting import counted

POD = ObjectKey(*api_resources.PODS, "default", "a")


def findings_of(cluster, cause_of):
    chronicle, views = Chronicle(), LiveViews(Profile())
    chronicle.fold(cluster.line.events)
    for event in cluster.line.events:
        views.fold(event)
    until = Revision(len(cluster.line.events))
    return list(
        pods.waiting(chronicle, views, until, lambda tree: cause_of(tree["metadata"]["name"]))
    )


def waiting(*names):
    cluster = Cluster()
    for name in names:
        cluster.pod(name)
    return cluster


def test_causes_that_differ_in_a_quoted_name_are_counted_together():
    found = findings_of(waiting("a", "b", "c"), lambda name: f'could not find claim "{name}"')
    (one,) = found
    assert (one.count, one.present) == (3, 3)
    assert one.text == '3 pods wait: could not find claim "c", and the like for 2 more'
    assert {subject.name for subject in one.objects} == {"a", "b", "c"}
    assert one.first < one.last


def test_other_causes_are_findings_of_their_own():
    causes = {"a": 'could not find claim "x"', "b": 'claim "x" is being deleted', "c": "no node"}
    found = findings_of(waiting(*causes), causes.get)
    assert sorted(one.text for one in found) == sorted(
        f"1 pod waits: {cause}" for cause in causes.values()
    )


def test_one_cause_of_several_pods_is_written_as_it_is():
    (one,) = findings_of(waiting("a", "b"), lambda _: 'could not find claim "x"')
    assert one.text == '2 pods wait: could not find claim "x"'


def test_pod_whose_node_is_chosen_waits_for_its_binding():
    """Schedulers name the node before they write the claims, which may take long."""
    cluster = waiting("a")
    status = {"status": {"nominatedNodeName": "n1"}}
    command = PatchObject(
        key=POD, version="v1", type=PatchType.MERGE, body=status, subresource="status"
    )
    cluster.line.submit(command, actor=USER)
    (one,) = findings_of(cluster, lambda _: "")
    assert one.text == "1 pod waits: a node is chosen, the binding is under way"


def test_pod_waits_since_it_was_made_also_in_the_views_of_a_past_moment():
    cluster = waiting("a")
    made = cluster.line.views.objects.created(POD)
    labels = {"metadata": {"labels": {"x": "y"}}}
    command = PatchObject(key=POD, version="v1", type=PatchType.MERGE, body=labels)
    cluster.line.submit(command, actor=USER)
    chronicle, views = Chronicle(), LiveViews(Profile())
    chronicle.fold(cluster.line.events)
    views.fold(cluster.line.views.objects.event(POD))
    until = cluster.line.views.revision
    (one,) = pods.waiting(chronicle, views, until, lambda _: "no node")
    assert (one.first, one.last) == (made, until)
    assert made < until


def said(cluster, message):
    """The Event of a scheduler that is not redra's about pod `a`."""
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    cluster.create("v1", "Event", f"a.{len(cluster.line.events)}", type="Warning",
                   reason="FailedScheduling", message=message, involvedObject=about)  # fmt: skip


def gone(cluster):
    cluster.kill("a")


def test_cause_in_an_event_is_the_last_one_since_the_pod_was_made():
    cluster = waiting("a")
    said(cluster, "0/1 nodes are available: 1 Too many pods.")
    said(cluster, "0/1 nodes are available: 1 Insufficient cpu.")
    (one,) = findings_of(cluster, lambda _: "")
    assert one.text == "1 pod waits: Insufficient cpu"
    gone(cluster)
    cluster.pod("a")
    (one,) = findings_of(cluster, lambda _: "")
    assert one.text == f"1 pod waits: {pods.UNTOLD}", "a namesake was refused"


def calls(ended):
    """The function calls for the findings of a waiting pod, after so many have come and gone."""
    cluster = Cluster()
    for _ in range(ended):
        cluster.pod("a")
        gone(cluster)
    cluster.pod("b")
    chronicle, views = Chronicle(), LiveViews(Profile())
    chronicle.fold(cluster.line.events)
    for event in cluster.line.events:
        views.fold(event)
    (one,), made = counted(pods.waiting, chronicle, views, views.revision, lambda _: "")
    assert one.text == f"1 pod waits: {pods.UNTOLD}"
    return made


def test_pods_that_are_gone_cost_a_waiting_pod_nothing():
    assert calls(ended=30) == calls(ended=3)

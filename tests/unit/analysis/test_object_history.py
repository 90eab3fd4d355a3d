"""The writers of fields, also in lists whose entries come and go."""

from app.analysis import object_history
from app.domain.controllers.resources import claim_key
from app.domain.values import api_resources
from app.domain.values.identifiers import Uid
from tests.cluster import DRIVER, Cluster


def history(cluster: Cluster, key: tuple) -> object_history.ObjectHistory:
    events = [each for each in cluster.line.events if each.key == key]
    return object_history.of(
        cluster.line.views,
        cluster.line.head.revision,
        events[::-1],
        lambda _: True,
        versions_max=50,
    )


def test_entry_of_a_list_keeps_its_writer_when_another_one_is_taken_out() -> None:
    cluster = Cluster()
    cluster.claim()
    key = claim_key("default", "claim")
    users = [{"resource": "pods", "name": name, "uid": Uid(name)} for name in ("p0", "p1")]
    revisions = []
    for reserved in (users[:1], users, users[1:]):
        result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "d0"}
        allocation = {"devices": {"results": [result]}}
        status = {"allocation": allocation, "reservedFor": reserved}
        cluster.patch("resourceclaims", "claim", {"status": status}, subresource="status")
        revisions.append(cluster.line.head.revision)
    answer = history(cluster, key)
    fields = {one.path: one for one in answer.fields}
    assert fields["status.reservedFor[0].name"].value == "p1"
    assert {
        one.revision for path, one in fields.items() if path.startswith("status.reservedFor")
    } == {revisions[1]}
    removed = {(one.path, one.old, one.new) for one in answer.versions[0].changes}
    assert ("status.reservedFor[0].name", "p0", None) in removed
    assert not any(new == "p1" for _, _, new in removed)


def test_device_keeps_its_writer_when_one_is_put_before_it() -> None:
    cluster = Cluster()
    cluster.node()
    cluster.slice(devices=[{"name": "d0"}])
    first = cluster.line.head.revision
    (key,) = cluster.line.views.objects.keys(*api_resources.RESOURCE_SLICES)
    tree = cluster.line.views.objects.get(key)
    devices = [{"name": "a"}, *tree["spec"]["devices"]]
    cluster.patch("resourceslices", key.name, {"spec": {"devices": devices}}, namespace="")
    fields = {one.path: one for one in history(cluster, key).fields}
    assert (fields["spec.devices[1].name"].value, fields["spec.devices[1].name"].revision) == (
        "d0",
        first,
    )
    assert fields["spec.devices[0].name"].revision == cluster.line.head.revision

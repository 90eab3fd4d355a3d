import pytest

from app.domain.values.timestamps import SECOND
from projections.claims import ClaimsProjection
from tests.unit.projections.log_of import START, LogOf, allocation, reserved


@pytest.fixture
def log() -> LogOf:
    return LogOf(ClaimsProjection())


def claim(log: LogOf, columns: str) -> list:
    return log.part("view_claims", "ns", "c", columns=columns)


def test_a_claim_goes_from_pending_to_allocated_to_reserved_and_back(log: LogOf) -> None:
    log.put("claim", "ns/c")
    assert claim(log, "state allocated allocated_revision") == ["pending", None, None]
    log.put("claim", "ns/c", status=allocation("p/a"))
    assert claim(log, "state allocated_revision devices") == ["allocated", 2, ["d/p/a"]]
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "x"))
    assert claim(log, "state allocated_revision allocated") == ["reserved", 2, START + 2 * SECOND]
    log.put("claim", "ns/c", status={})
    assert claim(log, "state allocated devices") == ["pending", None, []]
    log.put("claim", "ns/c", status=allocation("p/a"))
    assert claim(log, "state allocated_revision") == ["allocated", 5]


def test_a_claim_made_anew_begins_anew(log: LogOf) -> None:
    log.put("claim", "ns/c", status=allocation("p/a"))
    log.delete("claim", "ns/c")
    assert log.view.row("view_claims", ("ns", "c")) is None
    log.put("claim", "ns/c", status=allocation("p/a"))
    assert claim(log, "created allocated_revision") == [START + 3 * SECOND, 3]


def test_a_claim_names_the_pods_that_use_it(log: LogOf) -> None:
    log.put("claim", "ns/c")
    uses = {"resourceClaims": [{"name": "x", "resourceClaimName": "c"}]}
    log.put("pod", "ns/b", spec=uses)
    log.put("pod", "ns/a", spec={**uses, "nodeName": "n1"}, status={"phase": "Running"})
    log.put("pod", "other/a", spec=uses)
    [[first, second]] = claim(log, "pods")
    assert (first["name"], first["node"], first["phase"]) == ("a", "n1", "Running")
    assert second == {"name": "b", "uid": "uid-b", "node": "", "phase": "", "deleting": False}
    log.delete("pod", "ns/a")
    assert [pod["name"] for pod in claim(log, "pods")[0]] == ["b"]


def test_a_pod_uses_a_generated_claim_once_its_status_names_it(log: LogOf) -> None:
    log.put("claim", "ns/c")
    spec = {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}
    log.put("pod", "ns/a", spec=spec)
    assert claim(log, "pods") == [[]]
    named = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "c"}]}
    log.put("pod", "ns/a", spec=spec, status=named)
    assert [pod["name"] for pod in claim(log, "pods")[0]] == ["a"]


def test_a_pod_without_news_for_a_claim_touches_nothing(log: LogOf) -> None:
    log.put("claim", "ns/c")
    spec = {"resourceClaims": [{"name": "x", "resourceClaimName": "c"}]}
    log.put("pod", "ns/a", spec=spec)
    log.put("pod", "ns/plain")
    log.touched()
    log.put("pod", "ns/a", spec=spec, metadata={"labels": {"a": "b"}})
    log.put("pod", "ns/plain", status={"phase": "Running"})
    assert log.touched() == {}
    log.put("pod", "ns/a", spec=spec, status={"phase": "Running"})
    assert log.touched() == {"view_claims": [("ns", "c")]}


def test_requests_show_what_was_asked_and_given(log: LogOf) -> None:
    requests = [
        {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
        {
            "name": "two",
            "firstAvailable": [
                {"name": "big", "deviceClassName": "big", "count": 2},
                {"name": "small", "deviceClassName": "small"},
            ],
        },
    ]
    status = allocation("p/a", request="two/small")
    log.put("claim", "ns/c", spec={"devices": {"requests": requests}}, status=status)
    [[one, two]] = claim(log, "requests")
    assert (one["name"], one["devices"], one["asks"][0]["mode"]) == ("one", [], "All")
    assert (two["chosen"], two["devices"]) == ("small", ["d/p/a"])
    assert [ask["count"] for ask in two["asks"]] == [2, None]


def test_the_node_is_that_of_the_allocation(log: LogOf) -> None:
    status = allocation("p/a")
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    log.put("claim", "ns/c", status=status)
    assert claim(log, "node") == ["n1"]
    field["values"] = ["n1", "n2"]
    log.put("claim", "ns/c", status=status)
    assert claim(log, "node") == [""]


def test_each_share_has_a_row_with_what_it_consumes(log: LogOf) -> None:
    status = allocation("p/a", "p/b", shareID="s", consumedCapacity={"memory": "1Gi"})
    ready = {"type": "Ready", "status": "True"}
    status["devices"] = [
        {"driver": "d", "pool": "p", "device": "b", "shareID": "s", "conditions": [ready]}
    ]
    log.put("claim", "ns/c", status=status)
    assert log.touched()["view_claim_devices"] == [("ns", "c", 0), ("ns", "c", 1)]
    columns = "device share_id consumed_capacity conditions"
    first = log.part("view_claim_devices", "ns", "c", 0, columns=columns)
    assert first == ["a", "s", {"memory": "1Gi"}, []]
    assert log.row("view_claim_devices", "ns", "c", 1)["conditions"] == [ready]
    log.put("claim", "ns/c", status=allocation("p/a"))
    assert log.view.row("view_claim_devices", ("ns", "c", 1)) is None


def test_a_claim_made_for_a_pod_names_it(log: LogOf) -> None:
    owner = {"kind": "Pod", "name": "x", "controller": True}
    log.put("claim", "ns/c", metadata={"ownerReferences": [owner]})
    assert claim(log, "owner deleting") == ["x", False]

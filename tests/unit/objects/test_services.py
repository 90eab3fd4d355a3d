"""Services: addresses and node ports that are given, kept, refused and let go."""

from dataclasses import replace
from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import InputError, Invalid, Rejected
from app.domain.objects.kinds import services
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import DeleteObject, PatchType
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests.unit.objects.builders import Cluster, cluster, key

PLACE = key("services", "s", "default")


def service(name: str = "s", **spec: Any) -> JsonObject:
    """A service of one port, as a user writes it."""
    spec = {"ports": [{"port": 80}], "selector": {"app": "a"}, **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {name: value for name, value in spec.items() if value is not None},
    }


def serving(version: str = "1.37", addresses: str = "10.96.0.0/12") -> Cluster:
    """A cluster with the rules of a server."""
    made = cluster(version)
    ranges = services.parse_ranges(addresses, "30000-32767")
    made.rules = replace(rules_for(Profile(version=version)), services=ranges)
    return made


def addresses(tree: JsonObject) -> dict[str, Any]:
    """What of a service was given or has to do with it."""
    names = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    return {name: tree["spec"][name] for name in names if name in tree["spec"]}


def node_ports(tree: JsonObject) -> list[int | None]:
    return [port.get("nodePort") for port in tree["spec"]["ports"]]


def refused(made: Cluster, tree: JsonObject) -> str:
    """Why a service is not created, without the words that all refusals share."""
    with pytest.raises(Invalid) as problem:
        made.create(tree)
    return problem.value.message.partition(" is invalid: ")[2]


def test_service_gets_an_address_of_the_range_with_what_goes_with_it():
    spec = serving().create(service())["spec"]
    address = spec["clusterIP"]
    assert address.startswith("10.")
    assert spec == {
        "clusterIP": address,
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"app": "a"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


def test_every_service_has_an_address_of_its_own_until_the_range_is_full():
    made = serving(addresses="10.0.0.0/28")
    found = {made.create(service(f"s{n}"))["spec"]["clusterIP"] for n in range(14)}
    assert len(found) == 14
    with pytest.raises(Rejected, match="range is full") as problem:
        made.create(service("s14"))
    assert problem.value.code == 500
    gone = key("services", "s3", "default")
    free = made.get(gone)["spec"]["clusterIP"]
    made.do(DeleteObject(key=gone))
    assert made.create(service("s15"))["spec"]["clusterIP"] == free


def test_port_given_by_a_change_is_the_one_that_a_create_would_have_given():
    made, other = serving(), serving()
    made.create(service())
    changed = made.patch(PLACE, {"spec": {"type": "NodePort"}})
    assert node_ports(changed) == node_ports(other.create(service(type="NodePort")))
    assert node_ports(changed) != [30_000]


def test_same_write_gives_the_same_address():
    assert serving().create(service()) == serving().create(service())


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (
            {"clusterIP": "None"},
            ("None", ["None"], ["IPv4"], "SingleStack"),
        ),
        (
            {"clusterIP": "None", "selector": None},
            ("None", ["None"], ["IPv4", "IPv6"], "RequireDualStack"),
        ),
        (
            {"clusterIP": "10.96.0.10"},
            ("10.96.0.10", ["10.96.0.10"], ["IPv4"], "SingleStack"),
        ),
        (
            {"ipFamilyPolicy": "PreferDualStack", "clusterIP": "10.96.0.10"},
            ("10.96.0.10", ["10.96.0.10"], ["IPv4"], "PreferDualStack"),
        ),
    ],
)
def test_headless_and_named_addresses(spec, found):
    tree = serving().create(service(**spec))
    names = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    assert tuple(tree["spec"][name] for name in names) == found


def test_service_of_an_external_name_has_no_address():
    tree = serving().create(service(type="ExternalName", externalName="a.b", ports=None))
    assert addresses(tree) == {}
    assert "internalTrafficPolicy" not in tree["spec"]


def test_node_ports_are_given_and_kept_by_name():
    made = serving()
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    tree = made.create(service(type="NodePort", ports=ports))
    first, second = node_ports(tree)
    assert first != second
    assert all(30_000 <= port <= 32_767 for port in (first, second))
    assert tree["spec"]["externalTrafficPolicy"] == "Cluster"
    turned = made.update(service(type="NodePort", ports=[*ports[::-1], {"name": "c", "port": 82}]))
    assert node_ports(turned)[:2] == [second, first]
    assert addresses(turned) == addresses(tree)
    plain = made.update(service(ports=ports))
    assert node_ports(plain) == [None, None]
    assert "externalTrafficPolicy" not in plain["spec"]


def test_load_balancer_has_node_ports_unless_it_wants_none():
    made = serving()
    tree = made.create(service(type="LoadBalancer", externalTrafficPolicy="Local"))
    assert None not in node_ports(tree)
    assert tree["spec"]["allocateLoadBalancerNodePorts"] is True
    assert tree["spec"]["healthCheckNodePort"] not in node_ports(tree)
    without = made.create(service("t", type="LoadBalancer", allocateLoadBalancerNodePorts=False))
    assert node_ports(without) == [None]


def test_replacement_without_an_address_keeps_it_and_changes_nothing():
    made = serving()
    tree = made.create(service())
    assert made.update(service()) == tree
    assert made.types == []
    patched = made.patch(PLACE, {"spec": {"selector": {"app": "b"}}}, PatchType.STRATEGIC)
    assert addresses(patched) == addresses(tree)


def test_address_goes_with_the_type_and_comes_back_with_it():
    made = serving()
    made.create(service())
    named = made.patch(PLACE, {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    assert addresses(named) == {}
    back = made.patch(PLACE, {"spec": {"type": "ClusterIP", "externalName": None}})
    assert back["spec"]["clusterIP"].startswith("10.")


@pytest.mark.parametrize("wanted", ["None", "10.96.0.9"])
def test_address_may_not_change(wanted):
    made = serving()
    made.create(service(clusterIP="10.96.0.8"))
    with pytest.raises(Invalid) as problem:
        made.patch(PLACE, {"spec": {"clusterIP": wanted}})
    assert problem.value.message == (
        f'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["{wanted}"]: may not change '
        "once set"
    )


def test_status_write_leaves_the_addresses_alone():
    made = serving()
    tree = made.create(service())
    status = {**tree, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    assert addresses(made.update(json_tree.copy(status), subresource="status")) == addresses(tree)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"ports": None}, "spec.ports: Required value"),
        (
            {"ports": [{"port": 0}]},
            "[spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, "
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]",
        ),
        (
            {"ports": [{"port": 80, "targetPort": "a--b"}]},
            'spec.ports[0].targetPort: Invalid value: "a--b": must not contain consecutive hyphens',
        ),
        (
            {"ports": [{"port": 80, "protocol": "ICMP"}]},
            'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", '
            '"UDP"',
        ),
        (
            {"ports": [{"port": 80}, {"port": 81, "name": "b"}]},
            "spec.ports[0].name: Required value",
        ),
        (
            {"ports": [{"port": 80, "name": "b"}, {"port": 81, "name": "b"}]},
            'spec.ports[1].name: Duplicate value: "b"',
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30_000}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767",
        ),
        (
            {"clusterIP": "1.1.1.1"},
            'spec.clusterIPs: Invalid value: ["1.1.1.1"]: failed to allocate IP 1.1.1.1: the '
            "provided IP (1.1.1.1) is not in the valid range. The range of valid IPs is "
            "10.96.0.0/12",
        ),
        (
            {"clusterIPs": ["10.96.0.5"]},
            'spec.clusterIPs: Invalid value: ["10.96.0.5"]: must be empty when `clusterIP` is not '
            "specified",
        ),
        (
            {"clusterIP": "here"},
            'spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 '
            "or 2001:db8::ffff)",
        ),
        (
            {"type": "Other"},
            'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", '
            '"LoadBalancer", "NodePort"',
        ),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        (
            {"sessionAffinity": "Node"},
            'spec.sessionAffinity: Unsupported value: "Node": supported values: "ClientIP", "None"',
        ),
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not '
            "configured for dual-stack services",
        ),
        (
            {"ipFamilies": ["IPv6"]},
            'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
        ),
    ],
)  # fmt: skip
def test_service_is_refused_with_its_reason(spec, text):
    assert refused(serving(), service(**spec)) == text


def test_address_and_port_of_another_service_are_taken():
    made = serving()
    ports = [{"port": 80, "nodePort": 30_080}]
    made.create(service(type="NodePort", clusterIP="10.96.0.10", ports=ports))
    assert refused(made, service("t", clusterIP="10.96.0.10")) == (
        'spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: '
        "provided IP is already allocated"
    )
    assert refused(made, service("t", type="NodePort", ports=ports)) == (
        "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    )


def test_name_may_begin_with_a_digit_since_1_37():
    assert serving().create(service("1s"))["metadata"]["name"] == "1s"
    assert refused(serving("1.36"), service("1s")).startswith(
        'metadata.name: Invalid value: "1s": a DNS-1035 label must consist of'
    )


@pytest.mark.parametrize(
    ("addresses", "ports"),
    [("10.96.0.1/12", "30000-32767"), ("all", "30000-32767"), ("10.0.0.0/8", "32767-30000"),
     ("10.0.0.0/8", "30000"), ("10.0.0.0/8", "0-70000")],
)  # fmt: skip
def test_ranges_that_mean_nothing_are_refused(addresses, ports):
    with pytest.raises(InputError):
        services.parse_ranges(addresses, ports)

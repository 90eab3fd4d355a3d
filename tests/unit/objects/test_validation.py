"""Rules of objects.md, each with the path and words of the real server."""

from typing import Any

import pytest

from app.domain.log import ObjectKey, Revision
from app.domain.objects import registry, validation
from app.domain.objects.expressions import ExpressionProblem
from app.domain.objects.profile import Profile
from app.domain.objects.rules import ValidationContext
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.validation import conditions
from app.domain.values import names
from app.domain.values.timestamps import Instant

ADMIN = {"resource.kubernetes.io/admin-access": "true"}


def expression_check(text: str) -> ExpressionProblem | None:
    if text == "bad":
        return ExpressionProblem(detail="compilation failed: no")
    return ExpressionProblem(detail="", is_too_costly=True) if text == "costly" else None


class Namespaces:
    """A reader that knows just the namespace of the objects under test."""

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels
        self.revision = Revision(1)

    def get(self, key: ObjectKey) -> dict[str, Any] | None:
        assert key == ObjectKey("", "namespaces", "", "ns")
        return {"metadata": {"name": "ns", "labels": self._labels}}

    def event(self, key: ObjectKey) -> None:
        return None

    def keys(self, group: str, resource: str, namespace: str | None = None) -> list[ObjectKey]:
        return []

    def dependents(self, owner_uid: str) -> list[ObjectKey]:
        return []

    def by_uid(self, uid: str) -> None:
        return None


def context(namespace_labels: dict[str, str] | None = None) -> ValidationContext:
    return ValidationContext(
        profile=Profile(),
        schemas=Schemas(b'{"$defs": {}}'),
        reader=Namespaces(namespace_labels or {}),
        now=Instant(0),
        check_expression=expression_check,
    )


def tree(kind: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "ns"},
        "spec": spec,
    } | more


def errors_of(kind: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> list[str]:
    found = registry.find_kind("resource.k8s.io", "v1", kind) or registry.find_kind(
        "resource.k8s.io", "v1alpha3", kind
    )
    assert found is not None, kind
    errors = validation.validate_create(found, tree(kind, spec), context(labels))
    return [str(error) for error in errors]


def claim(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"devices": {"requests": list(requests)} | more}


def exact(name: str = "r", **fields: Any) -> dict[str, Any]:
    body = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1} | fields
    return {"name": name, "exactly": body}


def slice_spec(*devices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {
        "driver": "d.example.com",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
    }
    return base | ({"devices": list(devices)} if devices else {}) | fields


CLAIM_ROWS = [
    ("fine", claim(exact()), []),
    ("no requests", claim(), []),
    ("two names", claim(exact(), exact()), ['spec.devices.requests[1]: Duplicate value: "r"']),
    (
        "neither form",
        claim({"name": "r"}),
        [
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or "
            "`firstAvailable` is required"
        ],
    ),
    (
        "both forms",
        claim(exact() | {"firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}),
        [
            "spec.devices.requests[0]: Invalid value: null: exactly one of `exactly` or "
            "`firstAvailable` is required, but multiple fields are set"
        ],
    ),
    (
        "no class",
        claim(exact(deviceClassName="")),
        ["spec.devices.requests[0].exactly.deviceClassName: Required value"],
    ),
    (
        "count 0",
        claim(exact(count=0)),
        ["spec.devices.requests[0].exactly.count: Invalid value: 0: must be greater than zero"],
    ),
    (
        "count with All",
        claim(exact(allocationMode="All", count=3)),
        [
            "spec.devices.requests[0].exactly.count: Invalid value: 3: must not be specified when "
            "allocationMode is 'All'"
        ],
    ),
    (
        "unknown mode",
        claim(exact(allocationMode="Some")),
        [
            'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported '
            'values: "All", "ExactCount"'
        ],
    ),
    (
        "selector without cel",
        claim(exact(selectors=[{}])),
        ["spec.devices.requests[0].exactly.selectors[0].cel: Required value"],
    ),
    (
        "expression does not compile",
        claim(exact(selectors=[{"cel": {"expression": "bad"}}])),
        [
            "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "
            '"bad": compilation failed: no'
        ],
    ),
    (
        "expression too costly",
        claim(exact(selectors=[{"cel": {"expression": "costly"}}])),
        [
            "spec.devices.requests[0].exactly.selectors[0].cel.expression: Forbidden: too complex, "
            "exceeds cost limit"
        ],
    ),
    (
        "expression too long",
        claim(exact(selectors=[{"cel": {"expression": "a" * 10_241}}])),
        [
            "spec.devices.requests[0].exactly.selectors[0].cel.expression: Too long: may not be "
            "more than 10240 bytes"
        ],
    ),
    (
        "33 requests",
        claim(*(exact(f"r{number}") for number in range(33))),
        ["spec.devices.requests: Too many: 33: must have at most 32 items"],
    ),
    (
        "constraint on an unknown request",
        claim(exact(), constraints=[{"requests": ["q"], "matchAttribute": "a.b/c"}]),
        [
            'spec.devices.constraints[0].requests[0]: Invalid value: "q": must be the name of a '
            "request in the claim or the name of a request and a subrequest separated by '/'"
        ],
    ),
    (
        "attribute without domain",
        claim(exact(), constraints=[{"matchAttribute": "numa"}]),
        [
            'spec.devices.constraints[0].matchAttribute: Invalid value: "numa": a fully qualified '
            "name must be a domain and a name separated by a slash"
        ],
    ),
    (
        "config without opaque",
        claim(exact(), config=[{}]),
        ["spec.devices.config[0].opaque: Required value"],
    ),
    (
        "config parameters are a list",
        claim(exact(), config=[{"opaque": {"driver": "d.example.com", "parameters": [1]}}]),
        [
            'spec.devices.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a '
            "valid JSON object"
        ],
    ),
    (
        "value with Exists",
        claim(exact(tolerations=[{"operator": "Exists", "value": "x"}])),
        [
            "spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "
            '"x": must be empty for operator `Exists`'
        ],
    ),
    (
        "admin access without the label",
        claim(exact(adminAccess=True)),
        [
            "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the "
            "`resource.kubernetes.io/admin-access: true` label on the containing namespace"
        ],
    ),
]


@pytest.mark.parametrize(("_name", "spec", "expected"), CLAIM_ROWS, ids=[r[0] for r in CLAIM_ROWS])
def test_claim_is_judged_as_the_server_does(
    _name: str, spec: dict[str, Any], expected: list[str]
) -> None:
    assert errors_of("ResourceClaim", spec) == expected


def test_admin_access_is_allowed_where_the_namespace_says_so() -> None:
    assert errors_of("ResourceClaim", claim(exact(adminAccess=True)), labels=ADMIN) == []


def test_template_reports_admin_access_without_a_second_spec() -> None:
    spec = {"spec": claim(exact(adminAccess=True))}
    assert errors_of("ResourceClaimTemplate", spec)[0].startswith(
        "spec.devices.requests[0].adminAccess: Forbidden"
    )


SLICE_ROWS = [
    ("fine", slice_spec({"name": "d"}), []),
    (
        "no node selection",
        slice_spec({"name": "d"}, nodeName=None),
        [
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
            "`perDeviceNodeSelection` is required"
        ],
    ),
    (
        "two node selections",
        slice_spec({"name": "d"}, allNodes=True),
        [
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, '
            "`nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields "
            "are set"
        ],
    ),
    (
        "slice count 0",
        slice_spec(pool={"name": "p", "generation": 0, "resourceSliceCount": 0}),
        ["spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"],
    ),
    (
        "129 devices",
        slice_spec(*({"name": f"d{number}"} for number in range(129))),
        ["spec.devices: Too many: 129: must have at most 128 items"],
    ),
    (
        "65 devices, one tainted",
        slice_spec(
            *({"name": f"d{number}"} for number in range(64)),
            {"name": "t", "taints": [{"key": "k", "effect": "NoSchedule"}]},
        ),
        ["spec.devices: Too many: 65: must have at most 64 items"],
    ),
    (
        "attribute with two values",
        slice_spec({"name": "d", "attributes": {"a": {"int": 1, "string": "x"}}}),
        [
            'spec.devices[0].attributes[a]: Invalid value: {"IntValue":1,"BoolValue":null,'
            '"StringValue":"x","VersionValue":null,"IntValues":null,"BoolValues":null,'
            '"StringValues":null,"VersionValues":null}: exactly one value must be specified'
        ],
    ),
    (
        "version that is none",
        slice_spec({"name": "d", "attributes": {"a": {"version": "1.2"}}}),
        [
            'spec.devices[0].attributes[a].version: Invalid value: "1.2": must be a string '
            "compatible with semver.org spec 2.0.0"
        ],
    ),
    (
        "policy on a dedicated device",
        slice_spec(
            {
                "name": "d",
                "capacity": {"m": {"value": "4Gi", "requestPolicy": {"default": "1Gi"}}},
            }
        ),
        [
            "spec.devices[0].capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must "
            "be true"
        ],
    ),
    (
        "default below min",
        slice_spec(
            {
                "name": "d",
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {
                        "value": "8",
                        "requestPolicy": {"default": "1", "validRange": {"min": "2"}},
                    }
                },
            }
        ),
        [
            "spec.devices[0].capacity[m].requestPolicy.validRange.min: Invalid value: "
            '"1": default is less than min: 2'
        ],
    ),
    (
        "valid values twice",
        slice_spec(
            {
                "name": "d",
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {
                        "value": "8",
                        "requestPolicy": {"default": "1", "validValues": ["1", "1"]},
                    }
                },
            }
        ),
        ['spec.devices[0].capacity[m].requestPolicy.validValues[1]: Duplicate value: "1"'],
    ),
    (
        "two terms",
        slice_spec(
            nodeName=None,
            nodeSelector={
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]
            },
        ),
        [
            "spec.nodeSelector.nodeSelectorTerms: Invalid value: "
            '[{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],'
            '"MatchFields":null},{"MatchExpressions":null,"MatchFields":'
            '[{"Key":"metadata.name","Operator":"In","Values":["n"]}]}]: '
            "must have exactly one node selector term"
        ],
    ),
    (
        "counters and devices",
        slice_spec(
            {"name": "d"}, sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}]
        ),
        ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
    ),
    (
        "counters and devices, both empty",
        slice_spec(devices=[], sharedCounters=[]),
        ['spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'],
    ),
    (
        "taint without effect",
        slice_spec({"name": "d", "taints": [{"key": "k"}]}),
        ["spec.devices[0].taints[0].effect: Required value"],
    ),
    (
        "device node in a node-local slice",
        slice_spec({"name": "d", "allNodes": True}),
        [
            "spec.devices[0]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can "
            "only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        ],
    ),
    (
        "binding conditions without failure conditions",
        slice_spec({"name": "d", "bindingConditions": ["a.b/ready"]}),
        [
            "spec.devices[0].bindingFailureConditions: Invalid value: null: "
            "bindingFailureConditions are required to use bindingConditions"
        ],
    ),
    (
        "resources of the node",
        slice_spec(
            {
                "name": "d",
                "capacity": {"cores": {"value": "8"}},
                "nodeAllocatableResources": {
                    "cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
                    "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": "0"}},
                    "hugepages-2Mi": {"overhead": {"perContainer": "2Mi"}},
                },
            }
        ),
        [],
    ),
    (
        "resources of the node, wrong",
        slice_spec(
            {
                "name": "d",
                "nodeAllocatableResources": {
                    "cpu": {},
                    "ephemeral-storage": {"mapping": {}, "overhead": {}},
                    "example.com/gpu": {"mapping": {"deviceMultiplier": "0"}},
                    "hugepages-1Gi": {"mapping": {"capacityKey": "c"}},
                    "memory": {"overhead": {"perPod": "-1"}},
                },
            }
        ),
        [
            f"spec.devices[0].nodeAllocatableResources{text}"
            for text in (
                "[cpu]: Required value: at least one of `mapping` and `overhead` is required",
                "[ephemeral-storage].mapping: Required value: exactly one of `capacityKey` and "
                "`deviceMultiplier` is required",
                "[ephemeral-storage].overhead: Required value: at least one of `perPod` and "
                "`perContainer` is required",
                '[example.com/gpu]: Invalid value: "example.com/gpu": must be cpu, memory, '
                "ephemeral-storage or begin with hugepages-",
                '[example.com/gpu].mapping.deviceMultiplier: Invalid value: "0": must be greater '
                "than zero",
                '[hugepages-1Gi].mapping.capacityKey: Invalid value: "c": must be the name of a '
                "capacity of the device",
                "[hugepages-1Gi].mapping.capacityMultiplier: Required value: required when "
                "`capacityKey` is set",
                '[memory].overhead.perPod: Invalid value: "-1": must be greater than or equal to '
                "zero",
            )
        ],
    ),
    (
        "same name twice",
        slice_spec({"name": "d"}, {"name": "d"}),
        ['spec.devices[1]: Duplicate value: "d"'],
    ),
]


@pytest.mark.parametrize(("_name", "spec", "expected"), SLICE_ROWS, ids=[r[0] for r in SLICE_ROWS])
def test_slice_is_judged_as_the_server_does(
    _name: str, spec: dict[str, Any], expected: list[str]
) -> None:
    given = {name: value for name, value in spec.items() if value is not None}
    assert errors_of("ResourceSlice", given) == expected


def change(kind_name: str, old: dict[str, Any], new: dict[str, Any], sub: str = "") -> list[str]:
    kind = registry.find_kind("resource.k8s.io", "v1", kind_name)
    assert kind is not None
    return [str(error) for error in validation.validate_update(kind, new, old, sub, context())]


def test_claim_spec_is_immutable_and_printed_in_the_servers_spelling() -> None:
    old, new = (tree("ResourceClaim", claim(exact("h", count=number))) for number in (1, 2))
    assert change("ResourceClaim", old, new) == [
        'spec: Invalid value: {"Devices":{"Requests":[{"Name":"h","Exactly":{"DeviceClassName":'
        '"gpu","Selectors":null,"AllocationMode":"ExactCount","Count":2,"AdminAccess":null,'
        '"Tolerations":null,"Capacity":null},"FirstAvailable":null}],"Constraints":null,'
        '"Config":null}}: field is immutable'
    ]


def test_template_spec_is_printed_with_its_metadata_beside_it() -> None:
    old, new = (
        tree("ResourceClaimTemplate", {"metadata": {"labels": {"a": value}}, "spec": claim()})
        for value in ("b", "c")
    )
    assert change("ResourceClaimTemplate", old, new) == [
        'spec: Invalid value: {"labels":{"a":"c"},"Spec":{"Devices":{"Requests":[],'
        '"Constraints":null,"Config":null}}}: field is immutable'
    ]


def test_a_parameter_that_becomes_true_instead_of_1_is_a_change() -> None:
    old, new = (
        tree(
            "ResourceClaim",
            claim(config=[{"opaque": {"driver": "d", "parameters": {"a": value}}}]),
        )
        for value in (1, True)
    )
    [error] = change("ResourceClaim", old, new)
    assert error.endswith('"Parameters":{"a":true}}}]}}: field is immutable')


def test_maps_and_tolerations_are_printed_whole() -> None:
    request = exact(
        tolerations=[{"operator": "Exists"}],
        capacity={"requests": {"memory": "1Gi"}},
        selectors=[{"cel": {"expression": "true"}}],
    )
    old, new = (tree("ResourceClaim", claim(item)) for item in (exact(), request))
    assert change("ResourceClaim", old, new) == [
        'spec: Invalid value: {"Devices":{"Requests":[{"Name":"r","Exactly":{"DeviceClassName":'
        '"gpu","Selectors":[{"CEL":{"Expression":"true"}}],"AllocationMode":"ExactCount","Count":'
        '1,"AdminAccess":null,"Tolerations":[{"Key":"","Operator":"Exists","Value":"","Effect":"",'
        '"TolerationSeconds":null}],"Capacity":{"Requests":{"memory":"1Gi"}}},"FirstAvailable":'
        'null}],"Constraints":null,"Config":null}}: field is immutable'
    ]


def status(**fields: Any) -> dict[str, Any]:
    return tree("ResourceClaim", claim(exact()), status=fields)


RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d"}
ALLOCATION = {"devices": {"results": [RESULT]}}
CONSUMER = {"resource": "pods", "name": "a", "uid": "u"}


def test_reservation_needs_an_allocation() -> None:
    assert change("ResourceClaim", status(), status(reservedFor=[CONSUMER]), "status") == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]


def test_the_257th_consumer_is_refused() -> None:
    many = [CONSUMER | {"uid": f"u{number}"} for number in range(257)]
    new = status(allocation=ALLOCATION, reservedFor=many)
    assert change("ResourceClaim", status(allocation=ALLOCATION), new, "status") == [
        "status.reservedFor: Too many: 257: must have at most 256 items"
    ]


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        ({"resource": "pods", "name": "b", "uid": "u3"}, '[9]: Duplicate value: "u3"'),
        ({"resource": "pods", "uid": "v"}, "[9].name: Required value"),
        ({"name": "b", "uid": "v"}, "[9].resource: Required value"),
        ({"resource": "pods", "name": "b"}, "[9].uid: Required value"),
    ],
)
def test_one_odd_consumer_of_many_is_named(last: dict[str, Any], problem: str) -> None:
    many = [CONSUMER | {"uid": f"u{number}"} for number in range(9)]
    new = status(allocation=ALLOCATION, reservedFor=[*many, last])
    assert change("ResourceClaim", status(allocation=ALLOCATION), new, "status") == [
        f"status.reservedFor{problem}"
    ]


def test_consumers_are_not_added_to_a_terminating_claim() -> None:
    old = status(allocation=ALLOCATION, reservedFor=[CONSUMER])
    new = status(allocation=ALLOCATION, reservedFor=[CONSUMER, CONSUMER | {"uid": "v"}])
    new["metadata"] = {"name": "x", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    old["metadata"] = new["metadata"]
    assert change("ResourceClaim", old, new, "status") == [
        "status.reservedFor: Forbidden: new entries may not be added while "
        "`deallocationRequested` or `deletionTimestamp` are set"
    ]


def test_an_allocation_may_not_become_another() -> None:
    other = {"devices": {"results": [RESULT | {"device": "e"}]}}
    found = change(
        "ResourceClaim", status(allocation=ALLOCATION), status(allocation=other), "status"
    )
    assert len(found) == 1
    assert found[0].startswith('status.allocation: Invalid value: {"Devices":{"Results":[')
    assert found[0].endswith(": field is immutable")


def test_device_status_needs_an_allocated_device() -> None:
    new = status(
        allocation=ALLOCATION,
        devices=[{"driver": "d.example.com", "pool": "p", "device": "other"}],
    )
    assert change("ResourceClaim", status(allocation=ALLOCATION), new, "status") == [
        'status.devices[0]: Invalid value: {"Driver":"d.example.com","Pool":"p","Device":"other",'
        '"ShareID":""}: must be an allocated device in the claim'
    ]


CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
CONDITION_ROWS: list[tuple[str, list[dict[str, Any]], list[str]]] = [
    ("good", [CONDITION, CONDITION | {"type": "example.com/Other", "reason": "A:b,c_"}], []),
    (
        "nothing",
        [{}],
        [
            '.conditions[0].type: Invalid value: "": name part must be non-empty',
            f'.conditions[0].type: Invalid value: "": name part {names.QUALIFIED_MESSAGE}',
            '.conditions[0].status: Unsupported value: "": supported values: "False", "True", '
            '"Unknown"',
            ".conditions[0].lastTransitionTime: Required value",
            ".conditions[0].reason: Required value",
        ],
    ),
    (
        "another status",
        [CONDITION | {"status": "true"}],
        [
            '.conditions[0].status: Unsupported value: "true": supported values: "False", "True", '
            '"Unknown"'
        ],
    ),
    (
        "a reason of words",
        [CONDITION | {"reason": "not ready"}],
        [f'.conditions[0].reason: Invalid value: "not ready": {conditions.REASON_TEXT}'],
    ),
    (
        "long texts",
        [CONDITION | {"reason": "r" * 1_025, "message": "m" * 32_769}],
        [
            ".conditions[0].reason: Too long: may not be more than 1024 bytes",
            ".conditions[0].message: Too long: may not be more than 32768 bytes",
        ],
    ),
    (
        "a generation below zero",
        [CONDITION | {"observedGeneration": -1}],
        [
            ".conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal "
            "to zero"
        ],
    ),
    ("twice", [CONDITION, CONDITION], ['.conditions[1].type: Duplicate value: "Ready"']),
    (
        "nine",
        [CONDITION | {"type": f"C{number}"} for number in range(9)],
        [".conditions: Too many: 9: must have at most 8 items"],
    ),
]


@pytest.mark.parametrize(
    ("_name", "given", "expected"), CONDITION_ROWS, ids=[row[0] for row in CONDITION_ROWS]
)
def test_conditions_are_judged_alike_wherever_they_stand(
    _name: str, given: list[dict[str, Any]], expected: list[str]
) -> None:
    rule = tree("DeviceTaintRule", {"taint": {"key": "k", "effect": "None"}})
    new = rule | {"status": {"conditions": given}}
    assert change("DeviceTaintRule", rule, new, "status") == [f"status{text}" for text in expected]
    device = {"driver": "d.example.com", "pool": "p", "device": "d", "conditions": given}
    claimed = status(allocation=ALLOCATION, devices=[device])
    assert change("ResourceClaim", status(allocation=ALLOCATION), claimed, "status") == [
        f"status.devices[0]{text}" for text in expected
    ]


def test_patch_key_must_have_a_domain() -> None:
    spec = {"devices": {"attributes": {"health": {"string": "bad"}}}}
    assert errors_of("ResourceSlicePatch", spec) == [
        'spec.devices.attributes[health]: Invalid value: "health": must include a domain'
    ]


def test_unknown_taint_effect_that_is_stored_is_tolerated() -> None:
    rule = tree("DeviceTaintRule", {"taint": {"key": "k", "effect": "Later"}})
    assert change("DeviceTaintRule", rule, rule) == []
    assert errors_of("DeviceTaintRule", rule["spec"]) == [
        'spec.taint.effect: Unsupported value: "Later": supported values: "NoExecute", '
        '"NoSchedule", "None"'
    ]

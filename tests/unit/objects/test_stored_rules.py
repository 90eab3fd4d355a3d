"""The rules of workloads, budgets, roles, ingresses and volume claims, in upstream's words."""

from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Invalid
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import PatchType
from tests.together import together
from tests.unit.objects.builders import Cluster, cluster, key, placed
from tests.unit.objects.stored_rules import GONE, RIGHT, right

UNMATCHED = "`selector` does not match template `labels`"
STATEFUL = (
    "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
    "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' "
    "and 'minReadySeconds' are forbidden"
)


def serving() -> Cluster:
    """A cluster with the rules of a server."""
    made = cluster()
    made.rules = rules_for(Profile())
    return made


def reason(problem: Any) -> str:
    """The refusal without its beginning."""
    return str(problem.value.message.partition(" is invalid: ")[2])


@together(list(RIGHT), str)
def test_right_object_is_taken_and_written_again_without_a_change(kind):
    made = serving()
    tree = made.create(right(kind))
    assert made.update(dict(tree)) == tree
    assert made.types == []
    labelled = made.patch(
        placed(tree)[0], {"metadata": {"labels": {"a": "b"}}}, version=placed(tree)[1]
    )
    assert labelled["metadata"]["labels"]["a"] == "b"


CONTAINER = "spec__containers__0"
REFUSED = [
    # Pods
    ("Pod", {f"{CONTAINER}__image": GONE}, "spec.containers[0].image: Required value"),
    (
        "Pod",
        {f"{CONTAINER}__image": " a"},
        'spec.containers[0].image: Invalid value: " a": must not have leading or trailing '
        "whitespace",
    ),
    (
        "Pod",
        {f"{CONTAINER}__imagePullPolicy": "Never again"},
        'spec.containers[0].imagePullPolicy: Unsupported value: "Never again": supported values: '
        '"Always", "IfNotPresent", "Never"',
    ),
    (
        "Pod",
        {f"{CONTAINER}__ports": [{"containerPort": 70_000}]},
        "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and "
        "65535, inclusive",
    ),
    (
        "Pod",
        {
            f"{CONTAINER}__ports": [
                {"containerPort": 1, "name": "a"},
                {"containerPort": 2, "name": "a"},
            ]
        },
        'spec.containers[0].ports[1].name: Duplicate value: "a"',
    ),
    (
        "Pod",
        {f"{CONTAINER}__env": [{"name": "A=B"}]},
        'spec.containers[0].env[0].name: Invalid value: "A=B": a valid environment variable name '
        "must consist only of printable ASCII characters other than '='",
    ),
    (
        "Pod",
        {f"{CONTAINER}__volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
    ),
    (
        "Pod",
        {"spec__volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
    ),
    (
        "Pod",
        {"spec__volumes": [{"name": "v"}, {"name": "v"}]},
        'spec.volumes[1].name: Duplicate value: "v"',
    ),
    (
        "Pod",
        {f"{CONTAINER}__resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}},
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to '
        "cpu limit of 1500m",
    ),
    (
        "Pod",
        {"spec__dnsPolicy": "Other"},
        'spec.dnsPolicy: Unsupported value: "Other": supported values: "ClusterFirstWithHostNet", '
        '"ClusterFirst", "Default", "None"',
    ),
    (
        "Pod",
        {"spec__activeDeadlineSeconds": 0},
        "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
    ),
    (
        "Pod",
        {"spec__tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}]},
        "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when "
        "`tolerationSeconds` is set",
    ),
    (
        "Pod",
        {"spec__tolerations": [{"operator": "Equal"}]},
        'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` '
        'is empty, which means "match all values and all keys"',
    ),
    # Workloads
    (
        "Deployment",
        {"spec__template__metadata__labels": {"app": "b"}},
        'spec.template.metadata.labels: Invalid value: {"app":"b"}: ' + UNMATCHED,
    ),
    (
        "Deployment",
        {"spec__selector": GONE},
        "[spec.selector: Required value, spec.template.metadata.labels: Invalid value: "
        '{"app":"a"}: `selector` does not match template `labels`]',
    ),
    (
        "Deployment",
        {"spec__selector": {}},
        "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
    ),
    (
        "Deployment",
        {"spec__replicas": -1},
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ),
    (
        "Deployment",
        {"spec__template__spec__restartPolicy": "Never"},
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    (
        "Deployment",
        {"spec__template__spec__activeDeadlineSeconds": 5},
        "spec.template.spec.activeDeadlineSeconds: Forbidden: "
        "activeDeadlineSeconds in ReplicaSet is not Supported",
    ),
    (
        "ReplicaSet",
        {"spec__template__spec__activeDeadlineSeconds": 5},
        "spec.template.spec.activeDeadlineSeconds: Forbidden: "
        "activeDeadlineSeconds in ReplicaSet is not Supported",
    ),
    (
        "StatefulSet",
        {"spec__template__spec__activeDeadlineSeconds": 5},
        "spec.template.spec.activeDeadlineSeconds: Forbidden: "
        "activeDeadlineSeconds in StatefulSet is not Supported",
    ),
    (
        "DaemonSet",
        {"spec__template__spec__activeDeadlineSeconds": 5},
        "spec.template.spec.activeDeadlineSeconds: Forbidden: "
        "activeDeadlineSeconds in DaemonSet is not Supported",
    ),
    (
        "Deployment",
        {"spec__template__spec__containers": []},
        "spec.template.spec.containers: Required value",
    ),
    (
        "Deployment",
        {"spec__template__spec__containers__0__image": GONE},
        "spec.template.spec.containers[0].image: Required value",
    ),
    (
        "Deployment",
        {"spec__strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is "
        "'Recreate'",
    ),
    (
        "Deployment",
        {"spec__strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when '
        "`maxSurge` is 0",
    ),
    (
        "Deployment",
        {"spec__selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
        "[spec.selector.matchExpressions[0].values: Required value: must be specified when "
        "`operator` is 'In' or 'NotIn', spec.selector: Invalid value: "
        '{"matchExpressions":[{"key":"app","operator":"In"}]}: invalid label selector]',
    ),
    (
        "Deployment",
        {"spec__selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}},
        '[spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector '
        'operator, spec.selector: Invalid value: {"matchExpressions":[{"key":"app",'
        '"operator":"Like"}'
        "]}: invalid label selector]",
    ),
    (
        "StatefulSet",
        {"spec__selector": {}},
        "spec.selector: Invalid value: {}: empty selector is invalid for statefulset",
    ),
    (
        "StatefulSet",
        {"spec__podManagementPolicy": "Slow"},
        "spec.podManagementPolicy: Invalid value: \"Slow\": must be 'OrderedReady' or 'Parallel'",
    ),
    (
        "DaemonSet",
        {"spec__updateStrategy": {"type": "Now"}},
        'spec.updateStrategy.type: Unsupported value: "Now": supported values: "OnDelete", '
        '"RollingUpdate"',
    ),
    (
        "Job",
        {"spec__template__spec__restartPolicy": GONE},
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ),
    (
        "Job",
        {"spec__completionMode": "Indexed", "spec__parallelism": 2},
        "spec.completions: Required value: when completion mode is Indexed",
    ),
    ("CronJob", {"spec__schedule": GONE}, "spec.schedule: Required value"),
    (
        "CronJob",
        {"spec__schedule": "* * *"},
        'spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
    ),
    (
        "CronJob",
        {"metadata__name": "x" * 53},
        f'metadata.name: Invalid value: "{"x" * 53}": must be no more than 52 characters',
    ),
    (
        "CronJob",
        {"spec__jobTemplate__spec__template__spec__restartPolicy": "Always"},
        "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "
        '"OnFailure", "Never"',
    ),
    # Policies
    (
        "PodDisruptionBudget",
        {"spec__maxUnavailable": 1},
        'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},'
        '"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable '
        "cannot be both set",
    ),
    (
        "PodDisruptionBudget",
        {"spec__minAvailable": "half"},
        'spec.minAvailable: Invalid value: "half": a valid percent string must be a numeric string '
        "followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ),
    (
        "PodDisruptionBudget",
        {"spec__minAvailable": "101%"},
        'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec__minReplicas": 5},
        "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`",
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec__maxReplicas": 0, "spec__minReplicas": 0},
        "[spec.minReplicas: Invalid value: 0: must be greater than or equal to 1, "
        "spec.maxReplicas: Invalid value: 0: must be greater than 0]",
    ),
    (
        "Lease",
        {"spec__leaseDurationSeconds": 0},
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
    ),
    # Roles
    (
        "Role",
        {"rules__0__nonResourceURLs": ["/a"]},
        '[rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to '
        'non-resource URLs, rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to '
        "both regular resources and non-resource URLs]",
    ),
    (
        "Role",
        {"rules__0__verbs": []},
        "rules[0].verbs: Required value: verbs must contain at least one value",
    ),
    (
        "Role",
        {"rules__0__resources": GONE},
        "rules[0].resources: Required value: resource rules must supply at least one resource",
    ),
    (
        "RoleBinding",
        {"roleRef__kind": "Pod"},
        'roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"',
    ),
    ("RoleBinding", {"subjects__0__name": ""}, "subjects[0].name: Required value"),
    (
        "ClusterRoleBinding",
        {"subjects__0__namespace": GONE},
        "subjects[0].namespace: Required value",
    ),
    (
        "ClusterRoleBinding",
        {"subjects__0__kind": "Cat"},
        'subjects[0].kind: Unsupported value: "Cat": supported values: "ServiceAccount", "User", '
        '"Group"',
    ),
    # Networks and volumes
    (
        "Ingress",
        {"spec__rules": []},
        "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
    ),
    (
        "Ingress",
        {"spec__rules__0__http__paths__0__pathType": GONE},
        "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
    ),
    (
        "Ingress",
        {"spec__rules__0__http__paths__0__path": "a"},
        'spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path',
    ),
    (
        "Ingress",
        {"spec__rules__0__http__paths__0__backend": {"service": {"name": "s"}}},
        "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
    ),
    (
        "PersistentVolumeClaim",
        {"spec__accessModes": []},
        "spec.accessModes: Required value: at least 1 access mode is required",
    ),
    (
        "PersistentVolumeClaim",
        {"spec__resources": {}},
        "spec.resources[storage]: Required value",
    ),
    ("StorageClass", {"provisioner": ""}, "provisioner: Required value"),
    # Attributes of volumes, addresses, servers
    ("VolumeAttributesClass", {"driverName": ""}, "driverName: Required value"),
    (
        "VolumeAttributesClass",
        {"parameters": GONE},
        "parameters: Required value: must contain at least one key/value pair",
    ),
    (
        "ServiceCIDR",
        {"spec__cidrs": []},
        "spec.cidrs: Required value: at least one CIDR required",
    ),
    (
        "ServiceCIDR",
        {"spec__cidrs": ["10.0.0.0/8", "10.0.0.0/9"]},
        'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/8","10.0.0.0/9"]}: may specify no more '
        "than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96",
    ),
    (
        "ServiceCIDR",
        {"spec__cidrs": ["10.0.0.0"]},
        'spec.cidrs[0]: Invalid value: "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 '
        "or 2001:db8::/64)",
    ),
    (
        "ServiceCIDR",
        {"spec__cidrs": ["10.0.0.7/8"]},
        'spec.cidrs[0]: Invalid value: "10.0.0.7/8": must not have bits set beyond the prefix '
        "length",
    ),
    (
        "IPAddress",
        {"metadata__name": "x"},
        'metadata.name: Invalid value: "x": ParseAddr("x"): unable to parse IP',
    ),
    (
        "IPAddress",
        {"metadata__name": "2001:DB8::1"},
        'metadata.name: Invalid value: "2001:DB8::1": must be a canonical format IP address',
    ),
    ("IPAddress", {"spec__parentRef": GONE}, "spec.parentRef: Required value"),
    ("IPAddress", {"spec__parentRef__resource": ""}, "spec.parentRef.resource: Required value"),
    ("IPAddress", {"spec__parentRef__name": GONE}, "spec.parentRef.name: Required value"),
    (
        "APIService",
        {"metadata__name": "x"},
        'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.a.example"',
    ),
    (
        "APIService",
        {"spec__groupPriorityMinimum": 20_001},
        "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000",
    ),
    (
        "APIService",
        {"spec__versionPriority": 0},
        "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
    ),
    ("APIService", {"spec__service__name": ""}, "spec.service.name: Required value"),
    (
        "APIService",
        {"spec__service__port": 70_000},
        "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, "
        "inclusive",
    ),
    (
        "APIService",
        {"spec__insecureSkipTLSVerify": True, "spec__caBundle": "eA=="},
        "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
    ),
    (
        "APIService",
        {"spec__service": GONE, "spec__caBundle": "eHl6"},
        'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle',
    ),
]


@together(REFUSED, lambda row: f"{row[0]} {' '.join(row[1])}")
def test_wrong_object_is_refused_with_its_reason(row):
    kind, changes, text = row
    with pytest.raises(Invalid) as problem:
        serving().create(right(kind, **changes))
    assert reason(problem) == text


CHANGED = [
    (
        "Deployment",
        {"spec__selector__matchLabels": {"app": "a", "b": "c"}},
        '[spec.template.metadata.labels: Invalid value: {"app":"a"}: ' + UNMATCHED + ", "
        'spec.selector: Invalid value: {"matchLabels":{"app":"a","b":"c"}}: field is immutable]',
    ),
    ("StatefulSet", {"spec__serviceName": "other"}, STATEFUL),
    (
        "Job",
        {"spec__completions": 3},
        "spec.completions: Invalid value: 3: field is immutable",
    ),
    (
        "Job",
        {"spec__completionMode": "Indexed"},
        'spec.completionMode: Invalid value: "Indexed": field is immutable',
    ),
    (
        "RoleBinding",
        {"roleRef__name": "other"},
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role",'
        '"Name":"other"}: cannot change roleRef',
    ),
    (
        "PersistentVolumeClaim",
        {"spec__accessModes": ["ReadOnlyMany"]},
        "spec: Forbidden: spec is immutable after creation except resources.requests and "
        "volumeAttributesClassName for bound claims",
    ),
    (
        "StorageClass",
        {"parameters": {"a": "c"}},
        "parameters: Forbidden: updates to parameters are forbidden.",
    ),
    (
        "VolumeAttributesClass",
        {"driverName": "b.example"},
        "driverName: Forbidden: updates to driverName are forbidden.",
    ),
    (
        "ServiceCIDR",
        {"spec__cidrs": ["10.98.0.0/24"]},
        'spec.cidrs[0]: Invalid value: "10.98.0.0/24": field is immutable',
    ),
    (
        "IPAddress",
        {"spec__parentRef__name": "t"},
        'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"n",'
        '"Name":"t"}: field is immutable',
    ),
]


@together(CHANGED, lambda row: f"{row[0]} {' '.join(row[1])}")
def test_what_does_not_change_is_refused(row):
    kind, changes, text = row
    made = serving()
    tree = made.create(right(kind))
    with pytest.raises(Invalid) as problem:
        made.update(_changed(tree, changes))
    assert reason(problem) == text


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Deployment", {"spec__replicas": 5, "spec__template__spec__containers__0__image": "b"}),
        ("StatefulSet", {"spec__replicas": 5, "spec__minReadySeconds": 3}),
        ("Job", {"spec__parallelism": 4, "spec__suspend": True}),
        ("PersistentVolumeClaim", {"spec__volumeName": "v"}),
        ("StorageClass", {"allowVolumeExpansion": True}),
        ("ServiceCIDR", {"spec__cidrs": ["10.99.0.0/24", "2001:db8::/96"]}),
        ("APIService", {"spec__versionPriority": 20}),
        ("ClusterRole", {"rules": []}),
    ],
)
def test_what_may_change_changes(kind, changes):
    made = serving()
    tree = made.create(right(kind))
    made.update(_changed(tree, changes))
    assert made.types == ["ObjectUpdated"]


def test_template_of_a_job_stays_but_for_where_a_suspended_one_may_run():
    made = serving()
    tree = made.create(right("Job", spec__suspend=True))
    place, version = placed(tree)
    moved = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    made.patch(place, moved, version=version)
    assert made.types == ["ObjectUpdated"]
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}
    with pytest.raises(Invalid, match=r"spec\.template: Invalid value: .*: field is immutable"):
        made.patch(place, image, PatchType.STRATEGIC, version=version)
    begun = {"status": {"startTime": "2026-03-01T10:00:00Z"}}
    made.patch(place, begun, version=version, subresource="status")
    other = {"spec": {"template": {"spec": {"nodeSelector": {"a": "c"}}}}}
    with pytest.raises(Invalid, match=r"spec\.template"):
        made.patch(place, other, version=version)


def test_bound_volume_claim_may_grow_but_not_shrink():
    made = serving()
    made.create(right("PersistentVolumeClaim"))
    place = key("persistentvolumeclaims", "x", "default")
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    made.patch(place, bound, subresource="status")
    made.patch(place, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    with pytest.raises(Invalid) as problem:
        made.patch(place, {"spec": {"resources": {"requests": {"storage": "1Mi"}}}})
    assert reason(problem) == (
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    )


def test_groups_of_roles_and_subjects_are_filled_in():
    tree = serving().create(right("RoleBinding"))
    assert tree["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [subject.get("apiGroup") for subject in tree["subjects"]] == [
        "rbac.authorization.k8s.io",
        None,
    ]


def test_status_is_written_whatever_the_spec_is():
    """What was stored by an older release, or imported, can still be worked on."""
    made = cluster()
    tree = made.create(right("Deployment", spec__replicas=-1))
    made.rules = rules_for(Profile())
    made.update({**tree, "status": {"replicas": 1}}, subresource="status")
    assert made.types == ["ObjectUpdated"]


def _changed(tree: Any, changes: dict[str, Any]) -> Any:
    made = right(tree["kind"], **changes)
    return {**tree, **{name: made[name] for name in made if name != "metadata"}} | _stored_spec(
        tree, made
    )


def _stored_spec(tree: Any, made: Any) -> dict[str, Any]:
    """The spec as it is stored, defaults included, with what the change says."""
    if "spec" not in made or tree["kind"] not in ("Job", "StatefulSet"):
        return {}
    return {"spec": {**tree["spec"], **{k: v for k, v in made["spec"].items() if k != "template"}}}

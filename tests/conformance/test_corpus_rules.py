"""The rules of a real server that 99 manifests of public repositories showed.

The manifests are not beside the recording, so each rule has a small one of ours. A rule is read
off the lines that differed; every difference of the recording has to be one of these rules.
"""

import re

import pytest

from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests.api.serving import serving
from tests.conformance.api_differences.blocks import read
from tests.shared_data import shared_path

CONTAINER = {"name": "c", "image": "i:1"}
POD = {"containers": [CONTAINER]}
LABELLED = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
SELECTOR = {"matchLabels": {"a": "b"}}
WORKLOAD = {"selector": SELECTOR, "template": LABELLED}
LIMITED = {"containers": [CONTAINER | {"resources": {"limits": {"x.y/gpu": "1"}}}]}
UNSET = object()
NO_LABELS = "Invalid value: null: `selector` does not match template `labels`"
REQUIRED = "Required value"


def with_pod(pod):
    return {"spec": {"selector": SELECTOR, "template": LABELLED | {"spec": pod}}}


def job(**more):
    return {"spec": {"template": {"spec": {"restartPolicy": "Never"} | POD}} | more}


RULES = [
    # kind, what differed, manifest, status, what the answer has at which place
    ("Job", r"manualSelector", job(), 201, {"spec.manualSelector": False}),
    ("Job", r'-"status": \{\}', job(), 201, {"status": {}}),
    ("Job", r'job-name":|^-"name":', job(), 201, {"spec.template.metadata.labels.job-name": "x"}),
    ("Job", r'^-"labels"', job(), 201, {"metadata.labels.job-name": "x"}),
    (
        "Job",
        r"requests",
        {"spec": {"template": {"spec": {"restartPolicy": "Never"} | LIMITED}}},
        201,
        {"spec.template.spec.containers.0.resources.requests": UNSET},
    ),
    (
        "DaemonSet",
        r"deprecated\.daemonset",
        {"spec": WORKLOAD},
        201,
        {"metadata.annotations": {"deprecated.daemonset.template.generation": "1"}},
    ),
    (
        "DaemonSet",
        r"selector|restartPolicy",
        {"spec": {"template": {"spec": {}}}},
        422,
        {"errors": [NO_LABELS, REQUIRED]},
    ),
    (
        "DaemonSet|Deployment",
        r"imagePullPolicy",
        with_pod({"containers": [{"name": "c", "image": "NOT_A_REFERENCE"}]}),
        201,
        {"spec.template.spec.containers.0.imagePullPolicy": "IfNotPresent"},
    ),
    (
        "Deployment",
        r"selector",
        {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}},
        422,
        {"errors": [REQUIRED, NO_LABELS, REQUIRED]},
    ),
    (
        "Deployment|StatefulSet",
        r"requests",
        with_pod(LIMITED),
        201,
        {"spec.template.spec.containers.0.resources.requests": UNSET},
    ),
    (
        "Deployment",
        r"schedulingGroup",
        with_pod(POD | {"schedulingGroup": {"podGroupName": "g"}}),
        201,
        {"spec.template.spec.schedulingGroup": UNSET},
    ),
    (
        "Deployment",
        r'^-"apiVersion":"v1",$',
        with_pod(
            POD
            | {
                "volumes": [
                    {
                        "name": "v",
                        "downwardAPI": {
                            "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]
                        },
                    }
                ]
            }
        ),
        201,
        {"spec.template.spec.volumes.0.downwardAPI.items.0.fieldRef.apiVersion": "v1"},
    ),
    (
        "StatefulSet",
        r"persistentVolumeClaimRetentionPolicy",
        {
            "spec": {
                "serviceName": "s",
                "selector": SELECTOR,
                "template": LABELLED
                | {
                    "spec": {
                        "containers": [
                            CONTAINER | {"volumeMounts": [{"name": "www", "mountPath": "/d"}]}
                        ]
                    }
                },
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "www"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                ],
            }
        },
        201,
        {
            "spec.volumeClaimTemplates.0.status": {"phase": "Pending"},
            "spec.volumeClaimTemplates.0.kind": "PersistentVolumeClaim",
        },
    ),
    ("ClusterRole", r'"rules": null', {}, 201, {"rules": None}),
    (
        "PersistentVolumeClaim",
        r"finalizers|dataSourceRef",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "dataSource": {"apiGroup": "a.b", "kind": "VolumeSnapshot", "name": "s"},
            }
        },
        201,
        {
            "metadata.finalizers": ["kubernetes.io/pvc-protection"],
            "spec.dataSourceRef.kind": "VolumeSnapshot",
        },
    ),
    (
        "Ingress",
        r"defaultBackend",
        {"spec": {}},
        422,
        {
            "errors": [
                "Invalid value: null: either `defaultBackend` or `rules` must be specified",
            ]
        },
    ),
    (
        "Service",
        r"ipFamilyPolicy",
        {"spec": {"ports": [{"port": 80}], "ipFamilyPolicy": "None"}},
        422,
        {
            "errors": [
                'Unsupported value: "None": supported values: "PreferDualStack", '
                '"RequireDualStack", "SingleStack"'
            ]
        },
    ),
    (
        "Pod",
        r"RuntimeClass",
        {"spec": POD | {"runtimeClassName": "absent"}},
        403,
        {"message": 'pods "x" is forbidden: pod rejected: RuntimeClass "absent" not found'},
    ),
    (
        "Pod",
        r"nodeName",
        {"metadata": {"name": "A"}, "spec": POD | {"nodeName": "B_"}},
        422,
        {"fields": ["metadata.name", "spec.nodeName"]},
    ),
    (
        "ResourceClaim",
        r"ownerReferences",
        {
            "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
            "spec": {"devices": {}},
        },
        422,
        {"fields": ["metadata.ownerReferences.uid"]},
    ),
    (
        "ClusterRoleBinding",
        r"roleRef",
        {"roleRef": {}},
        422,
        {"fields": ["roleRef.kind", "roleRef.name"]},
    ),
    (
        "ResourceSlice",
        r"generation",
        {"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}},
        201,
        {"spec.pool.generation": 0},
    ),
    (
        "HorizontalPodAutoscaler",
        r"scaleUp",
        {
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
                "maxReplicas": 2,
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
            }
        },
        201,
        {
            "spec.behavior.scaleUp.stabilizationWindowSeconds": 0,
            "spec.behavior.scaleDown.policies": [
                {"periodSeconds": 15, "type": "Percent", "value": 100}
            ],
        },
    ),
    ("ResourceQuota|CronJob", r'-"status": \{\}', None, 201, {"status": {}}),
    (
        "CronJob",
        r"imagePullPolicy|terminationMessagePath",
        None,
        201,
        {
            "spec.jobTemplate.spec.template.spec.dnsPolicy": "ClusterFirst",
            "spec.jobTemplate.spec.template.spec.containers.0.imagePullPolicy": "IfNotPresent",
        },
    ),
]
MINIMAL = {
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": job()}},
    "ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
}
VERSIONS = {
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Ingress": "networking.k8s.io/v1",
    "Job": "batch/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "StatefulSet": "apps/v1",
}


def at(tree, path):
    for part in path.split("."):
        if isinstance(tree, list):
            tree = tree[int(part)]
        elif part in tree:
            tree = tree[part]
        else:
            return UNSET
    return tree


def shown(answer, path):
    causes = json_tree.objects(answer, "details", "causes")
    if path == "errors":
        return [cause["message"] for cause in causes]
    if path == "fields":
        return list(dict.fromkeys(cause["field"] for cause in causes))
    # Keys of labels and annotations have dots of their own.
    if path == "metadata.labels.job-name":
        return answer["metadata"]["labels"]["job-name"]
    return at(answer, path)


@pytest.mark.parametrize(
    ("kinds", "pattern", "tree", "code", "expected"),
    RULES,
    ids=[f"{kinds}-{number}" for number, (kinds, *_) in enumerate(RULES)],
)
async def test_manifest_is_answered_as_a_real_server_does(kinds, pattern, tree, code, expected):
    async with serving(profile=Profile(version="1.36.2")) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "corp"}})
        for name in kinds.split("|"):
            api_version = VERSIONS.get(name, "v1")
            group, version = registry.split_api_version(api_version)
            kind = registry.find_kind(group, version, name)
            prefix = f"/apis/{api_version}" if group else f"/api/{version}"
            place = "/namespaces/corp" if kind.namespaced else ""
            body = MINIMAL[name] if tree is None else tree
            body = body | {"metadata": {"name": "x"} | body.get("metadata", {})}
            path = f"{prefix}{place}/{kind.plural}?dryRun=All&fieldValidation=Strict"
            answer = await server.post(path, body, code=code)
            for field, value in expected.items():
                assert shown(answer, field) == value, field


def difference(hunk):
    """The lines of a hunk that differ, each with its side."""
    removed = [f"-{line.strip()}" for line in hunk.real if line not in hunk.ours]
    return "\n".join(
        [*removed, *(f"+{line.strip()}" for line in hunk.ours if line not in hunk.real)]
    )


def test_every_difference_that_a_manifest_showed_is_one_of_the_rules():
    text = shared_path("api-differences", "corpus.txt").read_text(encoding="utf-8")
    blocks = read(text)
    assert len(blocks) == 99
    unexplained = []
    for block in blocks:
        kind = block.title.split()[3]
        patterns = [pattern for kinds, pattern, *_ in RULES if kind in kinds.split("|")]
        for hunk in block.hunks:
            lines = difference(hunk)
            if not any(re.search(pattern, lines, re.MULTILINE) for pattern in patterns):
                unexplained.append(f"{block.title}\n{lines}")
    assert not unexplained, "\n\n".join(unexplained)

"""Fields that have no effect: dropped because of a gate, or stored; both with a warning."""

import copy

import pytest

from app.domain.objects.profile import Profile
from tests.api.custom import CRDS, WIDGETS, definition, version, widget
from tests.api.serving import serving

PATCHES = "/apis/resource.k8s.io/v1alpha3/resourceslicepatches"
PODS = "/api/v1/namespaces/default/pods"
OFF = Profile(gates={"DRAAdminControlledDeviceAttributes": False})
DROPPED = "the field is dropped because the feature gate {} is off"
STORED = "the field is stored and has no effect here: {}"


def patch(name="p", **more):
    devices = {
        "filter": {"driver": "gpu.example.com"},
        "priority": 1,
        "attributes": {"gpu.example.com/model": {"string": "x"}},
        "capacity": {"gpu.example.com/memory": {"value": "1Gi"}},
        **more,
    }
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }


def warnings(answer):
    return [value for name, value in answer.headers.multi_items() if name == "warning"]


def shown(place, text):
    return f'299 - "{place}: {text}"'


async def test_patches_are_served_without_their_gate_and_their_fields_dropped():
    async with serving(profile=OFF) as server:
        answer = await server.raw("POST", PATCHES, patch())
        assert answer.status_code == 201
        text = DROPPED.format("DRAAdminControlledDeviceAttributes")
        assert warnings(answer) == [
            shown(f"spec.devices.{field}", text) for field in ("attributes", "capacity")
        ]
        stored = await server.get(f"{PATCHES}/p")
        assert stored["spec"]["devices"] == {
            "filter": {"driver": "gpu.example.com"},
            "priority": 1,
        }
        listed = await server.get(PATCHES)
        assert len(listed["items"]) == 1
        answer = await server.raw("DELETE", f"{PATCHES}/p")
        assert answer.status_code == 200
        assert (await server.get(PATCHES))["items"] == []


SPEC = {"containers": [{"name": "c", "image": "i"}]}
CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {**SPEC, **spec}}


def workload(kind, **spec):
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {**SPEC, **spec}}
    made = {"selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "w"}, "spec": made, "apiVersion": "apps/v1", "kind": kind}


def claim(**exactly):
    spec = copy.deepcopy(CLAIM)
    spec["devices"]["requests"][0]["exactly"] |= exactly
    return spec


def alternatives(**first):
    """A request for either of two devices, the first with these fields."""
    either = [{"name": "a", "deviceClassName": "c", **first}, {"name": "b", "deviceClassName": "c"}]
    return {"devices": {"requests": [{"name": "r", "firstAvailable": either}]}}


def a_slice(device=None, **spec):
    made = {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d", **(device or {})}],
        **spec,
    }
    return {"metadata": {"name": "s"}, "spec": made}


GROUP = {"schedulingGroup": {"podGroupName": "g"}}
DERIVED = {"derivedAttributes": [{"name": "a.example.com/b", "expression": "true"}]}
RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
TEMPLATES = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
SLICES = f"{RESOURCE}/resourceslices"
APPS = "/apis/apps/v1/namespaces/default"
GROUPED = {"compatibilityGroups": ["g"], "counterSet": "s", "counters": {"c": {"value": "1"}}}
OLD = Profile(version="1.34")

FIELDS = [
    (Profile(), PODS, pod(**GROUP), "spec.schedulingGroup", "GenericWorkload"),
    (
        Profile(),
        f"{APPS}/deployments",
        workload("Deployment", **GROUP),
        "spec.template.spec.schedulingGroup",
        "GenericWorkload",
    ),
    (
        Profile(),
        CLAIMS,
        {"metadata": {"name": "c"}, "spec": claim(**DERIVED)},
        "spec.devices.requests[].exactly.derivedAttributes",
        "DRADerivedAttributes",
    ),
    (
        Profile(),
        TEMPLATES,
        {"metadata": {"name": "t"}, "spec": {"spec": claim(**DERIVED)}},
        "spec.spec.devices.requests[].exactly.derivedAttributes",
        "DRADerivedAttributes",
    ),
    (
        Profile(),
        SLICES,
        a_slice({"consumesCounters": [GROUPED]}),
        "spec.devices[].consumesCounters[].compatibilityGroups",
        "DRADeviceCompatibilityGroups",
    ),
    (
        OLD,
        SLICES,
        a_slice({"taints": [{"key": "k", "effect": "NoSchedule"}]}),
        "spec.devices[].taints",
        "DRADeviceTaints",
    ),
    (
        OLD,
        CLAIMS,
        {"metadata": {"name": "c"}, "spec": claim(tolerations=[{"operator": "Exists"}])},
        "spec.devices.requests[].exactly.tolerations",
        "DRADeviceTaints",
    ),
    (
        Profile(gates={"DRAConsumableCapacity": False}),
        CLAIMS,
        {"metadata": {"name": "c"}, "spec": alternatives(capacity={"requests": {"m": "1Gi"}})},
        "spec.devices.requests[].firstAvailable[].capacity",
        "DRAConsumableCapacity",
    ),
    (
        OLD,
        f"{RESOURCE}/deviceclasses",
        {"metadata": {"name": "c"}, "spec": {"extendedResourceName": "example.com/gpu"}},
        "spec.extendedResourceName",
        "DRAExtendedResource",
    ),
]


@pytest.mark.parametrize(("profile", "path", "tree", "place", "gate"), FIELDS)
async def test_field_whose_gate_is_off_is_dropped_with_a_warning(profile, path, tree, place, gate):
    async with serving(profile=profile) as server:
        answer = await server.raw("POST", path, tree)
        assert answer.status_code == 201, answer.text
        assert warnings(answer) == [shown(place, DROPPED.format(gate))]
        assert f'"{place.rpartition(".")[2]}"' not in answer.text


VOLUME = {"name": "v", "persistentVolumeClaim": {"claimName": "x"}}
MAPPING = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}}
STORES = Profile(gates={"DRANodeAllocatableResources": True, "DRAOptionalNodeOperations": True})
BATCH = "/apis/batch/v1/namespaces/default"
COUNTED = "failures are counted for the Job as a whole"


def job(**spec):
    return {"metadata": {"name": "w"}, "spec": {"template": RUN_ONCE, **spec}}


def set_of(kind, **fields):
    made = workload(kind)
    made["spec"] |= fields
    return made


def named(name, tree):
    tree["metadata"]["name"] = name
    return tree


def rolling(**fields):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


RUN_ONCE = {"spec": {**SPEC, "restartPolicy": "Never"}}
INDEXED = {"completionMode": "Indexed", "completions": 2}
NOBODY_ACTS = [
    (
        f"{BATCH}/cronjobs",
        {
            "metadata": {"name": "w"},
            "spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": RUN_ONCE}}},
        },
        "spec.schedule",
        "no controller makes Jobs of CronJobs",
    ),
    (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        {
            "metadata": {"name": "w"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
        },
        "spec.scaleTargetRef",
        "nothing is measured, and nothing is scaled",
    ),
    (
        "/api/v1/namespaces/default/replicationcontrollers",
        {
            "metadata": {"name": "w"},
            "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}},
        },
        "spec.template",
        "no controller makes pods of ReplicationControllers",
    ),
    (
        f"{BATCH}/jobs",
        job(**INDEXED, successPolicy={"rules": [{"succeededCount": 1}]}),
        "spec.successPolicy",
        "a Job succeeds with all of its completions",
    ),
    (f"{BATCH}/jobs", job(**INDEXED, backoffLimitPerIndex=0), "spec.backoffLimitPerIndex", COUNTED),
    (
        f"{APPS}/statefulsets",
        set_of("StatefulSet", **rolling(maxUnavailable=2)),
        "spec.updateStrategy.rollingUpdate.maxUnavailable",
        "pods of StatefulSets are replaced one by one",
    ),
    (
        f"{APPS}/statefulsets",
        set_of("StatefulSet", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}),
        "spec.persistentVolumeClaimRetentionPolicy",
        "no controller deletes the claims",
    ),
    (
        f"{APPS}/daemonsets",
        set_of("DaemonSet", **rolling(maxSurge=1, maxUnavailable=0)),
        "spec.updateStrategy.rollingUpdate.maxSurge",
        "pods of DaemonSets end before they are replaced",
    ),
]
RESTARTS = {"name": "c", "image": "i", "restartPolicy": "Never"}
IGNORED = [
    *NOBODY_ACTS,
    (
        f"{APPS}/deployments",
        workload("Deployment", containers=[{"name": "other", "image": "i"}, RESTARTS]),
        "spec.template.spec.containers[].restartPolicy",
        "emulated kubelets read the policy of the pod",
    ),
    (
        PODS,
        pod(readinessGates=[{"conditionType": "example.com/ready"}]),
        "spec.readinessGates",
        "emulated kubelets report pods as ready without them",
    ),
    (
        PODS,
        pod(volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "x"}}]),
        "spec.volumes[].gcePersistentDisk",
        "no node is refused for a disk that another pod on it has",
    ),
    (
        PODS,
        pod(volumes=[VOLUME]),
        "spec.volumes[].persistentVolumeClaim",
        "no node is refused for the volume of the claim",
    ),
    (
        SLICES,
        a_slice(MAPPING),
        "spec.devices[].nodeAllocatableResources",
        "devices take nothing of their node's resources",
    ),
    (
        SLICES,
        a_slice(skipNodeOperations=["*"]),
        "spec.skipNodeOperations",
        "allocation results get no copy of it",
    ),
]


@pytest.mark.parametrize(("path", "tree", "place", "reason"), IGNORED)
async def test_stored_field_without_effect_is_warned_about_once(path, tree, place, reason):
    async with serving(profile=STORES) as server:
        answer = await server.raw("POST", path, tree)
        assert answer.status_code == 201, answer.text
        is_little = place.endswith("persistentVolumeClaim")
        effect = STORED.replace("no effect", "little effect") if is_little else STORED
        assert warnings(answer) == [shown(place, effect.format(reason))]
        assert f'"{place.rpartition(".")[2]}"' in answer.text
        labels = {"metadata": {"labels": {"a": "b"}}}
        name = tree["metadata"]["name"]
        merge = {"content_type": "application/merge-patch+json"}
        answer = await server.raw("PATCH", f"{path}/{name}", labels, **merge)
        assert answer.status_code == 200
        assert warnings(answer) == []


async def test_workload_aware_scheduling_of_jobs_is_dropped_with_its_gate():
    """Otherwise a Job whose pods are to start together would wait for that in vain, in silence."""
    wanted = job(scheduling={"schedulingPolicy": {"basic": {}}})
    daily = {"schedule": "0 * * * *", "jobTemplate": {"spec": wanted["spec"]}}
    async with serving() as server:
        for path, tree, place in (
            (f"{BATCH}/jobs", wanted, "spec.scheduling"),
            (f"{BATCH}/cronjobs", named("d", {"metadata": {}, "spec": daily}),
             "spec.jobTemplate.spec.scheduling"),
        ):  # fmt: skip
            answer = await server.raw("POST", path, tree)
            assert answer.status_code == 201, answer.text
            assert warnings(answer)[0] == shown(place, DROPPED.format("WorkloadWithJob"))
            assert '"scheduling"' not in answer.text


async def test_workloads_with_defaults_get_no_warning():
    async with serving() as server:
        for path, tree in (
            (f"{APPS}/statefulsets", set_of("StatefulSet")),
            (f"{APPS}/daemonsets", set_of("DaemonSet")),
            (f"{APPS}/deployments", set_of("Deployment")),
            # The defaults, written out.
            (
                f"{APPS}/statefulsets",
                named("b", set_of("StatefulSet", **rolling(maxUnavailable=1))),
            ),
            (f"{APPS}/daemonsets", named("b", set_of("DaemonSet", **rolling(maxSurge=0)))),
            (f"{APPS}/daemonsets", named("c", set_of("DaemonSet", **rolling(maxSurge="0%")))),
            (f"{BATCH}/jobs", job(**INDEXED)),
        ):
            answer = await server.raw("POST", path, tree)
            assert (answer.status_code, warnings(answer)) == (201, []), answer.text


async def test_custom_kind_with_the_name_of_a_workload_gets_no_warning():
    """What happens to its objects is up to its own controller."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with serving() as server:
        await server.post(CRDS, definition(version(spec=spec), kind="CronJob", plural="cronjobs"))
        tree = widget(schedule="0 * * * *") | {"kind": "CronJob"}
        answer = await server.raw("POST", WIDGETS.replace("widgets", "cronjobs"), tree)
        assert (answer.status_code, warnings(answer)) == (201, []), answer.text


async def test_ordinary_pod_gets_no_warning():
    async with serving() as server:
        answer = await server.raw("POST", PODS, pod(volumes=[{"name": "v", "emptyDir": {}}]))
        assert (answer.status_code, warnings(answer)) == (201, [])

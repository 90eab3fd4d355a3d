"""Incidents after threads of trackers, with the words of their causes, fixed before a look."""

from dataclasses import replace

from tests.web.invented import Invented, ask, claim, node, pod, template
from tests.web.reported_incidents import lab, one


def runtime_class(name, **more):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name},
            "handler": "h", **more}  # fmt: skip


def asking(name="job", cpu="1", **spec):
    """A pod whose claim comes from a template, with more in its spec."""
    made = pod(name, "lab", template="one")
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu} if cpu else {}
    made["spec"].update(spec)
    return made


def hardware(new, *more):
    driver = f"{new('d')}.test"
    return {"apply": [*lab(driver, one(driver)), template("one", "lab", ask("c")), *more]}


def init_container_wants_most(new):
    """An init container warms a cache with more cpu than a node has; the others want little."""
    warm = new("warm")
    first = {"name": warm, "image": "x.test/w", "resources": {"requests": {"cpu": "64"}}}
    return Invented(
        about="job",
        told=(rf"this pod requests 64 \(init container {warm} alone requests 64\)",),
        steps=(hardware(new), {"apply": [asking(cpu="2", initContainers=[first])]}, {"wait": 5}),
    )


def runtime_adds_its_overhead(new):
    """The pod would fit, but for what its runtime needs for itself."""
    name = new("kata")
    made = runtime_class(name, overhead={"podFixed": {"cpu": "4"}})
    return Invented(
        about="job",
        told=(rf"this pod requests 18 \(4 of it is overhead of RuntimeClass {name}\)",),
        steps=(hardware(new, made), {"apply": [asking(cpu="14", runtimeClassName=name)]},
               {"wait": 5}),
    )  # fmt: skip


def limit_range_sets_the_request(new):
    """Somebody wrote no request, and the namespace has a large default."""
    limits = [{"type": "Container", "defaultRequest": {"cpu": "48"}}]
    return Invented(
        about="job",
        told=(r"this pod requests 48 \(a LimitRange set that of container main\)",),
        steps=(
            hardware(new, {"apiVersion": "v1", "kind": "LimitRange",
                           "metadata": {"name": new("range"), "namespace": "lab"},
                           "spec": {"limits": limits}}),
            {"apply": [asking(cpu="")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def runtime_chooses_its_nodes(new):
    """The runtime is installed on another node than the one with the devices."""
    name, label = new("kata"), f"x.test/{new('runtime')}"
    made = runtime_class(name, scheduling={"nodeSelector": {label: "true"}})
    return Invented(
        about="job",
        told=(
            rf"wants {label}=true: node n has no label",
            rf"{label}=true in the nodeSelector is from RuntimeClass {name}",
        ),
        steps=(hardware(new, node("m", {label: "true"}), made),
               {"apply": [asking(runtimeClassName=name)]}, {"wait": 5}),
    )  # fmt: skip


def _waiting(new, phase, state, **more):
    """A pod that has the only device and whose container waits, and one that wants the device."""
    status = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    status.update(state={"waiting": state}, **more)
    return (
        hardware(new),
        {"apply": [asking("first")]},
        {"wait": 5},
        {"status": {"phase": phase, "containerStatuses": [status]}, "of": "pod/lab/first"},
        {"wait": 5},
        {"apply": [asking()]},
        {"wait": 20},
    )


def holder_has_no_configuration(new):
    """The pod with the device waits for a ConfigMap that nobody made."""
    name = new("config")
    missing = f'configmap "{name}" not found'
    return Invented(
        about="job",
        told=(rf"reserved for pod lab/first, which has not started.{{0,90}}{missing}",),
        steps=_waiting(new, "Pending",
                       {"reason": "CreateContainerConfigError", "message": missing}),
    )  # fmt: skip


def holder_is_out_of_memory(new):
    """The pod with the device crashes again and again."""
    times = int(new("1"))
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    return Invented(
        about="job",
        told=(rf"lab/first, which fails on its node: .{{0,90}}OOMKilled.{{0,30}}{times} times",),
        steps=_waiting(new, "Running", {"reason": "CrashLoopBackOff"}, restartCount=times,
                       lastState={"terminated": ended}),
    )  # fmt: skip


def kubelet_does_not_admit_the_pods(new):
    """The kubelet of the only node refuses each pod of a Deployment, by its topology policy."""
    words = f"Resources cannot be allocated with Topology {new('locality')}"
    refused = {"phase": "Failed", "reason": "TopologyAffinityError", "message": words}
    return Invented(
        about="job",
        told=(rf"TopologyAffinityError: {words}",),
        steps=(hardware(new), {"apply": [asking()]}, {"wait": 5},
               {"status": refused, "of": "pod/lab/job"}, {"wait": 5}),
    )  # fmt: skip


def claim_is_reserved_for_a_gang(new):
    """Another scheduler reserved a claim for its gang, and nobody takes that back."""
    gang, group = new("gang"), "scheduling.x.test"
    consumers = [{"apiGroup": group, "resource": "podgroups", "name": gang, "uid": "7"}]
    driver = f"{new('d')}.test"
    return Invented(
        about="resourceclaim/shared",
        told=(rf"podgroups\.{group} {gang}, which is no pod: its own controller ends",),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim("shared", "lab", ask("c")),
                       pod("first", "lab", claim="shared")]},
            {"wait": 5},
            {"status": {"reservedFor": consumers}, "of": "resourceclaim/lab/shared"},
            {"delete": "pod/lab/first", "now": True},
            {"delete": "resourceclaim/lab/shared"},
            {"wait": 60},
        ),
    )  # fmt: skip


def leader_waits_itself(new):
    """A pod has to be beside a leader, which needs more devices than there are."""
    name = new("leader")
    leader = pod(name, "lab", template="two")
    leader["metadata"]["labels"] = {"role": name}
    term = {"labelSelector": {"matchLabels": {"role": name}},
            "topologyKey": "kubernetes.io/hostname"}  # fmt: skip
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return Invented(
        about="job",
        told=(rf"no such pod has a node; pod lab/{name} waits for one",),
        steps=(
            hardware(new, template("two", "lab", ask("c", count=2)), leader),
            {"apply": [asking(affinity=near)]},
            {"wait": 5},
        ),
    )  # fmt: skip


def class_names_no_extended_resource(new):
    """A chart asks for the resource of a device plugin, and no class stands for it."""
    resource = f"x.test/{new('gpu')}"
    made = pod("job", "lab", claim="none")
    del made["spec"]["resourceClaims"]
    amounts = {"cpu": "1", resource: "1"}
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return Invented(
        about="job",
        told=(rf"no DeviceClass stands for {resource}; DeviceClass c stands for no resource",),
        steps=(hardware(new), {"apply": [made]}, {"wait": 5}),
    )


def classes_stand_for_nothing_without_the_gate(new):
    """The class has the name of the resource, which the server of this cluster does not store."""
    made = class_names_no_extended_resource(new)
    (resource,) = {*made.steps[1]["apply"][0]["spec"]["containers"][0]["resources"]["limits"]} - {
        "cpu"
    }
    hardware_, *later = made.steps
    named = [
        {**one, "spec": {**one["spec"], "extendedResourceName": resource}}
        if one["kind"] == "DeviceClass"
        else one
        for one in hardware_["apply"]
    ]
    return replace(
        made,
        told=(rf"no DeviceClass stands for {resource}: the gate DRAExtendedResource is off",),
        steps=({"apply": named}, *later),
        closed=("DRAExtendedResource",),
    )


THREADS = (
    init_container_wants_most,
    runtime_adds_its_overhead,
    limit_range_sets_the_request,
    runtime_chooses_its_nodes,
    holder_has_no_configuration,
    holder_is_out_of_memory,
    kubelet_does_not_admit_the_pods,
    claim_is_reserved_for_a_gang,
    leader_waits_itself,
    class_names_no_extended_resource,
    classes_stand_for_nothing_without_the_gate,
)

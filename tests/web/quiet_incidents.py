"""Incidents with causes that no message of the control plane tells, fixed before a look."""

from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    driver_pod,
    node,
    pod,
    space,
    template,
)
from tests.web.reported_incidents import lab, one


def driver_reports_a_device_as_not_ready(new):
    """A driver could not attach its device to a network, and says so in the status of the claim."""
    driver, why = f"{new('d')}.test", f"vlan {new('')} is not allowed here"
    failed = {"type": "Ready", "status": "False", "reason": "AttachFailed", "message": why,
              "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    status = {"driver": driver, "pool": "n", "device": "x", "conditions": [failed]}
    return Invented(
        about="job",
        told=(rf"{driver}/n/x\b.{{0,40}}Ready is False \(AttachFailed: {why}\)",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"status": {"devices": [status]}, "of": "resourceclaim/lab/want"},
            {"wait": 20},
        ),
    )  # fmt: skip


def configuration_is_for_another_driver(new):
    """A claim configures its device for a driver whose name has two letters exchanged."""
    stem = new("driver")
    driver, written = f"{stem}.test", f"{stem}.tset"
    parameters = {"apiVersion": f"{written}/v1", "kind": "Sharing", "strategy": "TimeSlicing"}
    config = {"requests": ["dev"], "opaque": {"driver": written, "parameters": parameters}}
    return Invented(
        about="job",
        told=(rf"configuration.{{0,40}}driver {written} publishes no device.{{0,60}}{driver}",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c"), config=[config]),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def name_of_a_template_is_mistyped(new):
    """A pod names a ResourceClaimTemplate with two letters exchanged."""
    stem, driver = new("card"), f"{new('d')}.test"
    return Invented(
        about="job",
        told=(rf'"single-{stem}s" not found', rf"do you mean single-{stem}\?"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template(f"single-{stem}", "lab", ask("c"))]},
            {"apply": [pod("job", "lab", template=f"single-{stem}s")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def name_of_a_claim_is_mistyped(new):
    """A pod names a ResourceClaim without its last letter; another pod has one of its own."""
    stem, driver = new("card"), f"{new('d')}.test"
    return Invented(
        about="job",
        told=(rf"no ResourceClaim {stem}-share in namespace lab; do you mean {stem}-shared\?",),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim(f"{stem}-shared", "lab", ask("c")),
                       template("t", "lab", ask("c"))]},
            {"apply": [pod(f"{stem}-shar", "lab", template="t"),
                       pod("job", "lab", claim=f"{stem}-share")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def pod_tolerates_another_value(new):
    """Nodes with devices have a taint, which the pod tolerates with a value of another spelling."""
    driver, value = f"{new('d')}.test", new("present")
    taint = {"key": "x.test/cards", "value": value, "effect": "NoSchedule"}
    job = pod("job", "lab", claim="want")
    job["spec"]["tolerations"] = [
        {"key": "x.test/cards", "operator": "Equal", "value": f"{value}s", "effect": "NoSchedule"}
    ]
    return Invented(
        about="job",
        told=(rf"tolerates x\.test/cards={value}s:NoSchedule.{{0,60}}"
              rf"taint x\.test/cards={value}:NoSchedule",),
        steps=(
            {"apply": [*lab(driver), node("a", taints=[taint]), one(driver, on="a")]},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 20},
        ),
    )  # fmt: skip


def account_of_running_pods_is_deleted(new):
    """A ServiceAccount was deleted that a running pod names; a similar one is there."""
    stem, driver = new("runner"), f"{new('d')}.test"

    def account(name):
        return {"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": "lab"}}  # fmt: skip

    job = pod("job", "lab", claim="want")
    job["spec"]["serviceAccountName"] = stem
    return Invented(
        about="job",
        told=(rf"ServiceAccount lab/{stem}, which it names, does not exist",
              rf"do you mean {stem}s\?", r"it was deleted, by redra"),
        steps=(
            {"apply": [*lab(driver, one(driver)), account(stem), account(f"{stem}s")]},
            {"apply": [claim("want", "lab", ask("c")), job]},
            {"wait": 20},
            {"delete": f"serviceaccount/lab/{stem}"},
            {"wait": 20},
        ),
    )  # fmt: skip


def daemons(name, **spec):
    """A DaemonSet in namespace `drivers` whose pods run as an account of its name."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "example.com/d:1"}]
    made = {"metadata": {"labels": labels},
            "spec": {"containers": containers, "serviceAccountName": name, **spec}}  # fmt: skip
    return {"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "drivers"},
            "spec": {"selector": {"matchLabels": labels}, "template": made}}  # fmt: skip


def role_of(account, *resources, verbs=("get", "create"), group="resource.k8s.io"):
    """A ClusterRole with one rule, and its binding to an account of namespace `drivers`."""
    name = f"{account}-role"
    rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "drivers"}
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name},
         "rules": [rule]},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
         "subjects": [subject], "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name}},
    ]  # fmt: skip


def driver_runs_and_publishes_nothing(new):
    """The pods of a driver run on all nodes, and it has never published a slice."""
    driver, plugin, proxy, agent = f"{new('d')}.test", new("plugin"), new("proxy"), new("agent")
    return Invented(
        about="job",
        told=("no ResourceSlice is published",
              rf"ServiceAccount drivers/{plugin} may write ResourceSlices by ClusterRole "
              rf"{plugin}-role, and none for nodes a, b, where 2 pods of DaemonSet "
              rf"drivers/{plugin}, such as {plugin}-\w+, run as it: look into their logs"),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node("a"), node("b"),
                       *role_of(plugin, "resourceclaims", "resourceslices"), daemons(plugin),
                       *role_of(proxy, "resourceslices", verbs=("get", "list")), daemons(proxy),
                       *role_of(agent, "*", verbs=("*",), group="*"), daemons(agent)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def driver_says_at_its_end_what_is_wrong(new):
    """The pod of a driver ends again and again, with the cause in the last lines of its log."""
    driver, plugin, host = f"{new('d')}.test", new("plugin"), new("host")
    lines = "".join(f"I1130 12:00:{second} starting again\n" for second in range(10, 40))
    ended = {"exitCode": 1, "reason": "Error", "message": f"{lines}no kernel module on {host}\n"}
    report = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 7,
              "state": {"waiting": {"reason": "CrashLoopBackOff"}},
              "lastState": {"terminated": ended}}  # fmt: skip
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": plugin, "uid": "u",
             "controller": True}  # fmt: skip
    own = driver_pod(f"{plugin}-x", host)
    own["metadata"]["ownerReferences"] = [owner]
    return Invented(
        about="job",
        told=("no ResourceSlice is published",
              rf"{plugin}-x of DaemonSet {plugin} on node {host} fails: container main waits: "
              r"CrashLoopBackOff; it ended before with exit code 1 \(Error: … .{,200}"
              rf"starting again no kernel module on {host}\) and was restarted 7 times"),
        off=("kubelet", "garbage"),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node(host), own]},
            {"status": {"phase": "Running", "containerStatuses": [report]},
             "of": f"pod/drivers/{plugin}-x"},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


QUIET = (
    driver_says_at_its_end_what_is_wrong,
    driver_runs_and_publishes_nothing,
    account_of_running_pods_is_deleted,
    driver_reports_a_device_as_not_ready,
    configuration_is_for_another_driver,
    name_of_a_template_is_mistyped,
    name_of_a_claim_is_mistyped,
    pod_tolerates_another_value,
)

"""The default roles and bindings of every cluster, as a table and as objects of a new cluster.

A role is a name followed by its rules, one on each line: groups, resources and names, verbs. `core`
is the group without a name; `R` stands for read (get, list, watch), `W` for write (create, delete,
deletecollection, patch, update), `*` for all. A line that begins with `/` allows paths. `->` names
the label by which a role adds its rules to another role, `<-` the label of the roles whose rules a
role collects. Parity: objects.md
15.6; the roles with the label `kubernetes.io/bootstrapping: rbac-defaults` of a real server,
without the roles of individual controllers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from app.domain.objects.access.rules import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from app.domain.values import api_groups, json_tree, selectors
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import SelectorError

AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_LABEL = ("kubernetes.io/bootstrapping", "rbac-defaults")
_API_VERSION = f"{api_groups.RBAC}/v1"
_VERBS = {
    "R": ("get", "list", "watch"),
    "W": ("create", "delete", "deletecollection", "patch", "update"),
}

_TABLE = """
admin <-admin
cluster-admin
  * : * : *
  /*
edit <-edit ->admin
system:aggregate-to-admin ->admin
  authorization.k8s.io : localsubjectaccessreviews : create
  rbac.authorization.k8s.io : rolebindings roles : R W
system:aggregate-to-edit ->edit
  core : pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy : R
  core : serviceaccounts : impersonate
  core : pods pods/attach pods/exec pods/portforward pods/proxy : W
  core : pods/eviction : create
  core : configmaps events persistentvolumeclaims replicationcontrollers
    replicationcontrollers/scale secrets serviceaccounts services services/proxy : W
  core : serviceaccounts/token : create
  apps : daemonsets deployments deployments/rollback deployments/scale replicasets
    replicasets/scale statefulsets statefulsets/scale : W
  autoscaling : horizontalpodautoscalers : W
  batch : cronjobs jobs : W
  extensions : daemonsets deployments deployments/rollback deployments/scale ingresses
    networkpolicies replicasets replicasets/scale replicationcontrollers/scale : W
  policy : poddisruptionbudgets : W
  networking.k8s.io : ingresses networkpolicies : W
  coordination.k8s.io : leases : R W
  resource.k8s.io : resourceclaims resourceclaimtemplates : W
system:aggregate-to-view ->view
  core : configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods
    replicationcontrollers replicationcontrollers/scale serviceaccounts services
    services/status : R
  core : bindings events limitranges namespaces/status pods/log pods/status
    replicationcontrollers/status resourcequotas resourcequotas/status : R
  core : namespaces : R
  discovery.k8s.io : endpointslices : R
  apps : controllerrevisions daemonsets daemonsets/status deployments deployments/scale
    deployments/status replicasets replicasets/scale replicasets/status statefulsets
    statefulsets/scale statefulsets/status : R
  autoscaling : horizontalpodautoscalers horizontalpodautoscalers/status : R
  batch : cronjobs cronjobs/status jobs jobs/status : R
  extensions : daemonsets daemonsets/status deployments deployments/scale deployments/status
    ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status
    replicationcontrollers/scale : R
  policy : poddisruptionbudgets poddisruptionbudgets/status : R
  networking.k8s.io : ingresses ingresses/status networkpolicies : R
  resource.k8s.io : resourceclaims resourceclaims/status resourceclaimtemplates : R
system:auth-delegator
  authentication.k8s.io : tokenreviews : create
  authorization.k8s.io : subjectaccessreviews : create
system:basic-user
  authorization.k8s.io : selfsubjectaccessreviews selfsubjectrulesreviews : create
  authentication.k8s.io : selfsubjectreviews : create
system:certificates.k8s.io:certificatesigningrequests:nodeclient
  certificates.k8s.io : certificatesigningrequests/nodeclient : create
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  certificates.k8s.io : certificatesigningrequests/selfnodeclient : create
system:certificates.k8s.io:kube-apiserver-client-approver
  certificates.k8s.io : signers =kubernetes.io/kube-apiserver-client : approve
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  certificates.k8s.io : signers =kubernetes.io/kube-apiserver-client-kubelet : approve
system:certificates.k8s.io:kubelet-serving-approver
  certificates.k8s.io : signers =kubernetes.io/kubelet-serving : approve
system:certificates.k8s.io:legacy-unknown-approver
  certificates.k8s.io : signers =kubernetes.io/legacy-unknown : approve
system:discovery
  /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
system:heapster
  core : events namespaces nodes pods : R
  extensions : deployments : R
system:kube-aggregator
  core : endpoints services : R
system:kube-controller-manager
  core events.k8s.io : events : create patch update
  coordination.k8s.io : leases : create
  coordination.k8s.io : leases =kube-controller-manager : get update
  core : secrets serviceaccounts : create
  core : secrets : delete
  core : configmaps namespaces secrets serviceaccounts : get
  core : secrets serviceaccounts : update
  authentication.k8s.io : tokenreviews : create
  authorization.k8s.io : subjectaccessreviews : create
  * : * : list watch
  core : serviceaccounts/token : create
system:kube-dns
  core : endpoints services : list watch
system:kube-scheduler
  core events.k8s.io : events : create patch update
  coordination.k8s.io : leases : create
  coordination.k8s.io : leases =kube-scheduler : get update
  core : nodes : R
  core : pods : delete get list watch
  core : bindings pods/binding : create
  core : pods/status : patch update
  core : replicationcontrollers services : R
  apps extensions : replicasets : R
  apps : statefulsets : R
  policy : poddisruptionbudgets : R
  core : persistentvolumeclaims persistentvolumes : R
  authentication.k8s.io : tokenreviews : create
  authorization.k8s.io : subjectaccessreviews : create
  storage.k8s.io : csinodes : R
  storage.k8s.io : volumeattachments : R
  core : namespaces : R
  storage.k8s.io : csidrivers : R
  storage.k8s.io : csistoragecapacities : R
  resource.k8s.io : deviceclasses : R
  resource.k8s.io : resourceclaims : get list patch update watch
  resource.k8s.io : resourceclaims/status : get list patch update watch
  resource.k8s.io : resourceclaims/binding : patch update
  core : pods/finalizers : get list patch update watch
  resource.k8s.io : resourceslices : R
  resource.k8s.io : devicetaintrules : R
system:kubelet-api-admin
  core : nodes : R
  core : nodes : proxy
  core : nodes/log nodes/metrics nodes/proxy nodes/stats : *
system:monitoring
  /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*
system:node
  authentication.k8s.io : tokenreviews : create
  authorization.k8s.io : localsubjectaccessreviews subjectaccessreviews : create
  core : services : R
  core : nodes : create get list watch
  core : nodes/status : patch update
  core : nodes : patch update
  core : events : create patch update
  core : pods : R
  core : pods : create delete
  core : pods/status : patch update
  core : pods/eviction : create
  core : configmaps secrets : R
  core : persistentvolumeclaims persistentvolumes : get
  core : endpoints : get
  certificates.k8s.io : certificatesigningrequests : create get list watch
  coordination.k8s.io : leases : create delete get patch update
  storage.k8s.io : volumeattachments : get
  core : serviceaccounts/token : create
  core : persistentvolumeclaims/status : get patch update
  storage.k8s.io : csidrivers : R
  storage.k8s.io : csinodes : create delete get patch update
  node.k8s.io : runtimeclasses : R
  resource.k8s.io : resourceclaims : get
  resource.k8s.io : resourceslices : deletecollection
system:node-bootstrapper
  certificates.k8s.io : certificatesigningrequests : create get list watch
system:node-problem-detector
  core : nodes : get
  core : nodes/status : patch
  core events.k8s.io : events : create patch update
system:node-proxier
  core : endpoints services : list watch
  core : nodes : R
  core events.k8s.io : events : create patch update
  discovery.k8s.io : endpointslices : list watch
  networking.k8s.io : servicecidrs : list watch
system:persistent-volume-provisioner
  core : persistentvolumes : create delete get list watch
  core : persistentvolumeclaims : get list update watch
  storage.k8s.io : storageclasses : R
  core : events : watch
  core events.k8s.io : events : create patch update
system:public-info-viewer
  /healthz /livez /readyz /version /version/
system:service-account-issuer-discovery
  /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks
    /openid/v1/jwks/
system:volume-scheduler
  core : persistentvolumes : get list patch update watch
  storage.k8s.io : storageclasses : R
  core : persistentvolumeclaims : get list patch update watch
view <-view ->edit
"""

BINDINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cluster-admin": (("Group", MASTERS),),
    "system:basic-user": (("Group", AUTHENTICATED),),
    "system:discovery": (("Group", AUTHENTICATED),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-dns": (("ServiceAccount", "kube-dns"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:node": (),
    "system:node-proxier": (("User", "system:kube-proxy"),),
    "system:public-info-viewer": (("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
}
"""The subjects of each role, by the name of the role, which is also that of the binding."""


@lru_cache(maxsize=1)
def roles() -> tuple[JsonObject, ...]:
    """The cluster roles, sorted by name, with collected rules. They must not be changed."""
    roles_made: list[JsonObject] = []
    for line in _lines():
        if line.startswith("  "):
            roles_made[-1]["rules"].append(_rule(line.split()))
        else:
            roles_made.append(_role(line.split()))
    # Collected rules may be collected again: view is part of edit, and edit of admin.
    for _ in range(3):
        for role in roles_made:
            if "aggregationRule" in role:
                role["rules"] = collected(role, roles_made)
    return tuple(sorted(roles_made, key=lambda role: str(role["metadata"]["name"])))


def collected(role: JsonView, others: Sequence[JsonView]) -> list[JsonObject]:
    """The rules that the aggregation rule of a role selects, each once.

    Parity: objects.md 15.6; selectors in their order, the roles of each by name; a selector that
    cannot be read selects nothing.
    """
    collected_rules: list[JsonObject] = []
    for wanted in json_tree.objects(role, "aggregationRule", "clusterRoleSelectors"):
        try:
            selector = selectors.label_selector_of(wanted)
        except SelectorError:
            continue
        for other in sorted(others, key=lambda tree: meta.name(tree)):
            labels = meta.labels(other)
            if other is not role and selector.matches(labels):
                rules = json_tree.objects(other, "rules")
                collected_rules += [rule for rule in rules if rule not in collected_rules]
    return collected_rules


def bindings() -> list[JsonObject]:
    """The default cluster role bindings."""
    return [_binding(name, subjects) for name, subjects in BINDINGS.items()]


def of_extension_servers() -> list[JsonObject]:
    """The role with which extension API servers read client authentication, and its binding."""
    name, namespace = "extension-apiserver-authentication-reader", "kube-system"
    rule = {
        "apiGroups": [""],
        "resourceNames": ["extension-apiserver-authentication"],
        "resources": ["configmaps"],
        "verbs": list(_VERBS["R"]),
    }
    role = {**_tree("Role", name, namespace), "rules": [rule]}
    binding = {
        **_tree("RoleBinding", f"system::{name}", namespace),
        "roleRef": {"apiGroup": api_groups.RBAC, "kind": "Role", "name": name},
        "subjects": [
            {"apiGroup": api_groups.RBAC, "kind": "User", "name": f"system:{user}"}
            for user in ("kube-controller-manager", "kube-scheduler")
        ],
    }
    return [role, binding]


def _lines() -> Iterator[str]:
    """Yields the lines of the table, each joined with its continuation lines."""
    pending = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("    "):
            pending = f"{pending} {line.strip()}"
            continue
        if pending:
            yield pending
        pending = line
    yield pending


def _role(words: list[str]) -> JsonObject:
    name, *marks = words
    tree = {**_tree("ClusterRole", name), "rules": []}
    for mark in marks:
        label = f"{AGGREGATE}{mark[2:]}"
        if mark.startswith("->"):
            tree["metadata"]["labels"][label] = "true"
        else:
            selector = {"matchLabels": {label: "true"}}
            tree["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return tree


def _rule(words: list[str]) -> JsonObject:
    if words[0].startswith("/"):
        return {"nonResourceURLs": ["*"] if words == ["/*"] else words, "verbs": _of_paths(words)}
    groups, resources, verbs = (part.split() for part in " ".join(words).split(" : "))
    rule: JsonObject = {"apiGroups": ["" if group == "core" else group for group in groups]}
    if names := [word[1:] for word in resources if word.startswith("=")]:
        rule["resourceNames"] = names
    rule["resources"] = [word for word in resources if not word.startswith("=")]
    rule["verbs"] = sorted({verb for word in verbs for verb in _VERBS.get(word, (word,))})
    return rule


def _of_paths(words: list[str]) -> list[str]:
    return ["*"] if words == ["/*"] else ["get"]


def _binding(name: str, subjects: Sequence[tuple[str, str]]) -> JsonObject:
    tree = _tree("ClusterRoleBinding", name)
    tree["roleRef"] = {"apiGroup": api_groups.RBAC, "kind": "ClusterRole", "name": name}
    if subjects:
        tree["subjects"] = [
            {"kind": kind, "name": subject, "namespace": "kube-system"}
            if kind == "ServiceAccount"
            else {"apiGroup": api_groups.RBAC, "kind": kind, "name": subject}
            for kind, subject in subjects
        ]
    return tree


def _tree(kind: str, name: str, namespace: str = "") -> JsonObject:
    metadata: JsonObject = {
        "name": name,
        "annotations": dict(_ANNOTATIONS),
        "labels": dict([_LABEL]),
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata}

"""Which objects are right, in the words of the real server.

Belongs here: the rules of objects.md 4 to 9 and 15, one module per family of kinds, each returning
every broken rule with its path. Does not belong here: metadata (checked by the lifecycle for every
kind), decoding, defaulting, dropping of gated fields (they ran before), and who may write what.
Imported by bootstrap, which plugs it into `Rules`, and by tests.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from app.domain.log import ObjectKey
from app.domain.objects.access.rules import RBAC
from app.domain.objects.custom import checking, definition_rules, rule_checking
from app.domain.objects.field_errors import FieldError
from app.domain.objects.registry import ADMISSION, Kind
from app.domain.objects.rules import ValidationContext
from app.domain.objects.validation import (
    address_ranges,
    api_services,
    core,
    jobs,
    networks,
    policies,
    priority_classes,
    roles,
    services,
    signing_requests,
    stored_data,
    volumes,
    workloads,
)
from app.domain.objects.validation.admission import policies as admission_policies
from app.domain.objects.validation.admission import webhooks
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.devices import (
    claims,
    classes,
    patches,
    pool_requests,
    slices,
    taint_rules,
)
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

Create: TypeAlias = Callable[[JsonView, Context], list[FieldError]]
Update: TypeAlias = Callable[[JsonView, JsonView, str, Context], list[FieldError]]


def _again(check: Create) -> Update:
    """A change is judged as a new object; the status by itself is not."""

    def check_change(
        tree: JsonView, _old: JsonView, subresource: str, context: Context
    ) -> list[FieldError]:
        return [] if subresource == "status" else check(tree, context)

    return check_change


_CREATE: Mapping[tuple[str, str], Create] = {
    ("resource.k8s.io", "DeviceClass"): classes.create,
    ("resource.k8s.io", "ResourceClaim"): claims.create,
    ("resource.k8s.io", "ResourceClaimTemplate"): claims.create_template,
    ("resource.k8s.io", "ResourceSlice"): slices.create,
    ("resource.k8s.io", "DeviceTaintRule"): taint_rules.create,
    ("resource.k8s.io", "ResourceSlicePatch"): patches.create,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): pool_requests.create,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): lambda tree, context: (
        definition_rules.check(tree, context.object_rules)
    ),
    (ADMISSION, "MutatingAdmissionPolicy"): admission_policies.create_mutating,
    (ADMISSION, "MutatingAdmissionPolicyBinding"): admission_policies.create_binding,
    (ADMISSION, "MutatingWebhookConfiguration"): webhooks.create,
    (ADMISSION, "ValidatingAdmissionPolicy"): admission_policies.create_validating,
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): admission_policies.create_validating_binding,
    (ADMISSION, "ValidatingWebhookConfiguration"): webhooks.create,
    ("scheduling.k8s.io", "PriorityClass"): priority_classes.create,
    ("", "ConfigMap"): stored_data.create_config_map,
    ("", "Secret"): stored_data.create_secret,
    ("", "Service"): services.create,
    ("", "PersistentVolumeClaim"): volumes.create_claim,
    ("", "Namespace"): core.create_namespace,
    ("", "Pod"): core.create_pod,
    ("", "Node"): core.create_node,
    ("apps", "DaemonSet"): workloads.create_daemon_set,
    ("apps", "Deployment"): workloads.create_deployment,
    ("apps", "ReplicaSet"): workloads.create_replica_set,
    ("apps", "StatefulSet"): workloads.create_stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): policies.create_autoscaler,
    ("batch", "CronJob"): jobs.create_cron_job,
    ("batch", "Job"): jobs.create,
    ("certificates.k8s.io", "CertificateSigningRequest"): signing_requests.create,
    ("coordination.k8s.io", "Lease"): policies.create_lease,
    ("apiregistration.k8s.io", "APIService"): api_services.create,
    ("networking.k8s.io", "IPAddress"): address_ranges.create_address,
    ("networking.k8s.io", "Ingress"): networks.create_ingress,
    ("networking.k8s.io", "ServiceCIDR"): address_ranges.create_range,
    ("policy", "PodDisruptionBudget"): policies.create_budget,
    (RBAC, "ClusterRole"): roles.create_cluster_role,
    (RBAC, "ClusterRoleBinding"): roles.create_cluster_role_binding,
    (RBAC, "Role"): roles.create_role,
    (RBAC, "RoleBinding"): roles.create_role_binding,
    ("storage.k8s.io", "StorageClass"): volumes.create_class,
    ("storage.k8s.io", "VolumeAttributesClass"): volumes.create_attributes_class,
}

_UPDATE: Mapping[tuple[str, str], Update] = {
    ("resource.k8s.io", "DeviceClass"): classes.update,
    ("resource.k8s.io", "ResourceClaim"): claims.update,
    ("resource.k8s.io", "ResourceClaimTemplate"): claims.update_template,
    ("resource.k8s.io", "ResourceSlice"): slices.update,
    ("resource.k8s.io", "DeviceTaintRule"): taint_rules.update,
    ("resource.k8s.io", "ResourceSlicePatch"): patches.update,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): pool_requests.update,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): lambda tree, old, _, context: (
        definition_rules.check_change(tree, old, context.object_rules)
    ),
    (ADMISSION, "MutatingAdmissionPolicy"): _again(admission_policies.create_mutating),
    (ADMISSION, "MutatingAdmissionPolicyBinding"): _again(admission_policies.create_binding),
    (ADMISSION, "MutatingWebhookConfiguration"): _again(webhooks.create),
    (ADMISSION, "ValidatingAdmissionPolicy"): _again(admission_policies.create_validating),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): _again(
        admission_policies.create_validating_binding
    ),
    (ADMISSION, "ValidatingWebhookConfiguration"): _again(webhooks.create),
    ("scheduling.k8s.io", "PriorityClass"): priority_classes.update,
    ("", "ConfigMap"): stored_data.update_config_map,
    ("", "Secret"): stored_data.update_secret,
    ("", "Service"): services.update,
    ("", "PersistentVolumeClaim"): volumes.update_claim,
    ("", "Pod"): core.update_pod,
    ("", "Node"): core.update_node,
    ("apps", "DaemonSet"): workloads.update(workloads.create_daemon_set),
    ("apps", "Deployment"): workloads.update(workloads.create_deployment),
    ("apps", "ReplicaSet"): workloads.update(workloads.create_replica_set),
    ("apps", "StatefulSet"): workloads.update_stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _again(policies.create_autoscaler),
    ("batch", "CronJob"): jobs.update_cron_job,
    ("batch", "Job"): jobs.update,
    ("coordination.k8s.io", "Lease"): _again(policies.create_lease),
    ("apiregistration.k8s.io", "APIService"): _again(api_services.create),
    ("networking.k8s.io", "IPAddress"): address_ranges.update_address,
    ("networking.k8s.io", "Ingress"): _again(networks.create_ingress),
    ("networking.k8s.io", "ServiceCIDR"): address_ranges.update_range,
    ("policy", "PodDisruptionBudget"): _again(policies.create_budget),
    (RBAC, "ClusterRole"): _again(roles.create_cluster_role),
    (RBAC, "ClusterRoleBinding"): roles.update_cluster_role_binding,
    (RBAC, "Role"): _again(roles.create_role),
    (RBAC, "RoleBinding"): roles.update_role_binding,
    ("storage.k8s.io", "StorageClass"): volumes.update_class,
    ("storage.k8s.io", "VolumeAttributesClass"): volumes.update_attributes_class,
}


def validate_create(kind: Kind, tree: JsonView, context: ValidationContext) -> list[FieldError]:
    """Every rule that a new object breaks; the tree is in the storage version, defaulted."""
    if kind.custom is not None:
        return _custom(kind, tree, None, context)
    check = _CREATE.get((kind.group, kind.kind))
    return check(tree, _context(tree, context)) if check is not None else []


def validate_update(
    kind: Kind, tree: JsonView, old: JsonView, subresource: str, context: ValidationContext
) -> list[FieldError]:
    """Every rule that a change breaks; with `subresource` only its part was changed."""
    if kind.custom is not None:
        return _custom(kind, tree, old, context)
    check = _UPDATE.get((kind.group, kind.kind))
    return check(tree, old, subresource, _context(tree, context)) if check is not None else []


def _custom(
    kind: Kind, tree: JsonView, old: JsonView | None, context: ValidationContext
) -> list[FieldError]:
    """The rules of a custom kind; asked only when the object is what its schema says."""
    assert kind.custom is not None, "asked for custom kinds only"
    version = kind.custom.versions[kind.storage_version]
    if not version.has_rules or checking.check(version.schema, tree, old):
        return []
    return rule_checking.check(version.schema, tree, old, context.object_rules)


def _context(tree: JsonView, given: ValidationContext) -> Context:
    name = json_tree.text(tree, "metadata", "namespace")
    namespace = given.reader.get(ObjectKey("", "namespaces", "", name)) if name else None
    return Context(
        profile=given.profile,
        namespace_labels=json_tree.labels(namespace or {}, "metadata", "labels"),
        check_expression=given.check_expression,
        object_rules=given.object_rules,
        policy_rules=given.policy_rules,
    )


__all__ = ["Context", "validate_create", "validate_update"]

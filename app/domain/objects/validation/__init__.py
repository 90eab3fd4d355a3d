"""Validation of objects, with the messages of the real server.

Belongs here: the rules of objects.md 4 to 9 and 15, one module for each family of kinds. Each
returns an error with a path for every broken rule. Does not belong here: metadata (checked by the
lifecycle for every kind), decoding, defaulting and dropping of gated fields (which run before), and
access control.
Imported by bootstrap, which plugs it into `Rules`, and by tests.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from app.domain.log import ObjectKey
from app.domain.objects.custom import checking, definition_rules, rule_checking
from app.domain.objects.field_errors import FieldError
from app.domain.objects.registry import Kind
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
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

Create: TypeAlias = Callable[[JsonView, Context], list[FieldError]]
Update: TypeAlias = Callable[[JsonView, JsonView, str, Context], list[FieldError]]


def _again(check: Create) -> Update:
    """Returns a check of changes that checks like a create, except of the status."""

    def check_change(
        tree: JsonView, _old: JsonView, subresource: str, context: Context
    ) -> list[FieldError]:
        return [] if subresource == "status" else check(tree, context)

    return check_change


_CREATE: Mapping[tuple[str, str], Create] = {
    (api_groups.RESOURCE, "DeviceClass"): classes.create,
    (api_groups.RESOURCE, "ResourceClaim"): claims.create,
    (api_groups.RESOURCE, "ResourceClaimTemplate"): claims.create_template,
    (api_groups.RESOURCE, "ResourceSlice"): slices.create,
    (api_groups.RESOURCE, "DeviceTaintRule"): taint_rules.create,
    (api_groups.RESOURCE, "ResourceSlicePatch"): patches.create,
    (api_groups.RESOURCE, "ResourcePoolStatusRequest"): pool_requests.create,
    (api_groups.API_EXTENSIONS, "CustomResourceDefinition"): lambda tree, context: (
        definition_rules.check(tree, context.object_rules)
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "MutatingAdmissionPolicy",
    ): admission_policies.create_mutating,
    (
        api_groups.ADMISSION_REGISTRATION,
        "MutatingAdmissionPolicyBinding",
    ): admission_policies.create_binding,
    (api_groups.ADMISSION_REGISTRATION, "MutatingWebhookConfiguration"): webhooks.create,
    (
        api_groups.ADMISSION_REGISTRATION,
        "ValidatingAdmissionPolicy",
    ): admission_policies.create_validating,
    (
        api_groups.ADMISSION_REGISTRATION,
        "ValidatingAdmissionPolicyBinding",
    ): admission_policies.create_validating_binding,
    (api_groups.ADMISSION_REGISTRATION, "ValidatingWebhookConfiguration"): webhooks.create,
    (api_groups.SCHEDULING, "PriorityClass"): priority_classes.create,
    ("", "ConfigMap"): stored_data.create_config_map,
    ("", "Secret"): stored_data.create_secret,
    ("", "Service"): services.create,
    ("", "PersistentVolumeClaim"): volumes.create_claim,
    ("", "Namespace"): core.create_namespace,
    ("", "Pod"): core.create_pod,
    ("", "Node"): core.create_node,
    (api_groups.APPS, "DaemonSet"): workloads.create_daemon_set,
    (api_groups.APPS, "Deployment"): workloads.create_deployment,
    (api_groups.APPS, "ReplicaSet"): workloads.create_replica_set,
    (api_groups.APPS, "StatefulSet"): workloads.create_stateful_set,
    (api_groups.AUTOSCALING, "HorizontalPodAutoscaler"): policies.create_autoscaler,
    (api_groups.BATCH, "CronJob"): jobs.create_cron_job,
    (api_groups.BATCH, "Job"): jobs.create,
    (api_groups.CERTIFICATES, "CertificateSigningRequest"): signing_requests.create,
    (api_groups.COORDINATION, "Lease"): policies.create_lease,
    (api_groups.API_REGISTRATION, "APIService"): api_services.create,
    (api_groups.NETWORKING, "IPAddress"): address_ranges.create_address,
    (api_groups.NETWORKING, "Ingress"): networks.create_ingress,
    (api_groups.NETWORKING, "ServiceCIDR"): address_ranges.create_range,
    (api_groups.POLICY, "PodDisruptionBudget"): policies.create_budget,
    (api_groups.RBAC, "ClusterRole"): roles.create_cluster_role,
    (api_groups.RBAC, "ClusterRoleBinding"): roles.create_cluster_role_binding,
    (api_groups.RBAC, "Role"): roles.create_role,
    (api_groups.RBAC, "RoleBinding"): roles.create_role_binding,
    (api_groups.STORAGE, "StorageClass"): volumes.create_class,
    (api_groups.STORAGE, "VolumeAttributesClass"): volumes.create_attributes_class,
}

_UPDATE: Mapping[tuple[str, str], Update] = {
    (api_groups.RESOURCE, "DeviceClass"): classes.update,
    (api_groups.RESOURCE, "ResourceClaim"): claims.update,
    (api_groups.RESOURCE, "ResourceClaimTemplate"): claims.update_template,
    (api_groups.RESOURCE, "ResourceSlice"): slices.update,
    (api_groups.RESOURCE, "DeviceTaintRule"): taint_rules.update,
    (api_groups.RESOURCE, "ResourceSlicePatch"): patches.update,
    (api_groups.RESOURCE, "ResourcePoolStatusRequest"): pool_requests.update,
    (api_groups.API_EXTENSIONS, "CustomResourceDefinition"): lambda tree, old, _, context: (
        definition_rules.check_change(tree, old, context.object_rules)
    ),
    (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicy"): _again(
        admission_policies.create_mutating
    ),
    (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicyBinding"): _again(
        admission_policies.create_binding
    ),
    (api_groups.ADMISSION_REGISTRATION, "MutatingWebhookConfiguration"): _again(webhooks.create),
    (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicy"): _again(
        admission_policies.create_validating
    ),
    (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicyBinding"): _again(
        admission_policies.create_validating_binding
    ),
    (api_groups.ADMISSION_REGISTRATION, "ValidatingWebhookConfiguration"): _again(webhooks.create),
    (api_groups.SCHEDULING, "PriorityClass"): priority_classes.update,
    ("", "ConfigMap"): stored_data.update_config_map,
    ("", "Secret"): stored_data.update_secret,
    ("", "Service"): services.update,
    ("", "PersistentVolumeClaim"): volumes.update_claim,
    ("", "Namespace"): core.update_namespace,
    ("", "Pod"): core.update_pod,
    ("", "Node"): core.update_node,
    (api_groups.APPS, "DaemonSet"): workloads.update(workloads.create_daemon_set),
    (api_groups.APPS, "Deployment"): workloads.update(workloads.create_deployment),
    (api_groups.APPS, "ReplicaSet"): workloads.update(workloads.create_replica_set),
    (api_groups.APPS, "StatefulSet"): workloads.update_stateful_set,
    (api_groups.AUTOSCALING, "HorizontalPodAutoscaler"): _again(policies.create_autoscaler),
    (api_groups.BATCH, "CronJob"): jobs.update_cron_job,
    (api_groups.BATCH, "Job"): jobs.update,
    (api_groups.COORDINATION, "Lease"): _again(policies.create_lease),
    (api_groups.API_REGISTRATION, "APIService"): _again(api_services.create),
    (api_groups.NETWORKING, "IPAddress"): address_ranges.update_address,
    (api_groups.NETWORKING, "Ingress"): _again(networks.create_ingress),
    (api_groups.NETWORKING, "ServiceCIDR"): address_ranges.update_range,
    (api_groups.POLICY, "PodDisruptionBudget"): _again(policies.create_budget),
    (api_groups.RBAC, "ClusterRole"): _again(roles.create_cluster_role),
    (api_groups.RBAC, "ClusterRoleBinding"): roles.update_cluster_role_binding,
    (api_groups.RBAC, "Role"): _again(roles.create_role),
    (api_groups.RBAC, "RoleBinding"): roles.update_role_binding,
    (api_groups.STORAGE, "StorageClass"): volumes.update_class,
    (api_groups.STORAGE, "VolumeAttributesClass"): volumes.update_attributes_class,
}


def validate_create(kind: Kind, tree: JsonView, context: ValidationContext) -> list[FieldError]:
    """Returns the errors of a new object; the tree is in the storage version and defaulted."""
    if kind.custom is not None:
        return _custom(kind, tree, None, context)
    check = _CREATE.get((kind.group, kind.kind))
    return check(tree, _context(tree, context)) if check is not None else []


def validate_update(
    kind: Kind, tree: JsonView, old: JsonView, subresource: str, context: ValidationContext
) -> list[FieldError]:
    """Returns the errors of a changed object; with `subresource`, only that part changed."""
    if kind.custom is not None:
        return _custom(kind, tree, old, context)
    check = _UPDATE.get((kind.group, kind.kind))
    return check(tree, old, subresource, _context(tree, context)) if check is not None else []


def _custom(
    kind: Kind, tree: JsonView, old: JsonView | None, context: ValidationContext
) -> list[FieldError]:
    """Returns the errors of a custom object's CEL rules, which run only if it fits its schema."""
    assert kind.custom is not None, "asked for custom kinds only"
    version = kind.custom.versions[kind.storage_version]
    if not version.has_rules or checking.check(version.schema, tree, old):
        return []
    return rule_checking.check(version.schema, tree, old, context.object_rules)


def _context(tree: JsonView, context: ValidationContext) -> Context:
    name = meta.namespace(tree)
    namespace = context.reader.get(ObjectKey("", "namespaces", "", name)) if name else None
    return Context(
        profile=context.profile,
        namespace_labels=meta.labels(namespace or {}),
        check_expression=context.check_expression,
        object_rules=context.object_rules,
        policy_rules=context.policy_rules,
        flawless_specs=context.flawless_specs,
    )


__all__ = ["Context", "validate_create", "validate_update"]

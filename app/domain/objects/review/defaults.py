"""Defaults of webhook configurations and admission policies, in place.

Parity: objects.md 15.4; defaults of admissionregistration.k8s.io/v1.
"""

from collections.abc import Callable

from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonObject

PORT = 443
SECONDS = 10


def fill_mutating(tree: JsonObject) -> None:
    """Sets the defaults of a MutatingWebhookConfiguration."""
    for webhook in json_tree.objects(tree, "webhooks"):
        _webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def fill_validating(tree: JsonObject) -> None:
    """Sets the defaults of a ValidatingWebhookConfiguration."""
    for webhook in json_tree.objects(tree, "webhooks"):
        _webhook(webhook)


def fill_policy(tree: JsonObject) -> None:
    """Sets the defaults of a validating or mutating admission policy."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        spec.setdefault("failurePolicy", "Fail")
        _resources(spec.get("matchConstraints"))


def fill_binding(tree: JsonObject) -> None:
    """Sets the defaults of a policy binding."""
    _resources(json_tree.get(tree, "spec", "matchResources"))


def _webhook(webhook: JsonObject) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("timeoutSeconds", SECONDS)
    _matching(webhook)
    _rules(webhook, "rules")
    service = json_tree.get(webhook, "clientConfig", "service")
    if isinstance(service, dict):
        service.setdefault("port", PORT)


def _resources(match_resources: object) -> None:
    if isinstance(match_resources, dict):
        _matching(match_resources)
        _rules(match_resources, "resourceRules")
        _rules(match_resources, "excludeResourceRules")


def _matching(holder: JsonObject) -> None:
    holder.setdefault("matchPolicy", "Equivalent")
    holder.setdefault("namespaceSelector", {})
    holder.setdefault("objectSelector", {})


def _rules(holder: JsonObject, name: str) -> None:
    for rule in json_tree.objects(holder, name):
        rule.setdefault("scope", "*")


BY_KIND: dict[tuple[str, str], Callable[[JsonObject], None]] = {
    (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicy"): fill_policy,
    (api_groups.ADMISSION_REGISTRATION, "MutatingAdmissionPolicyBinding"): fill_binding,
    (api_groups.ADMISSION_REGISTRATION, "MutatingWebhookConfiguration"): fill_mutating,
    (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicy"): fill_policy,
    (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicyBinding"): fill_binding,
    (api_groups.ADMISSION_REGISTRATION, "ValidatingWebhookConfiguration"): fill_validating,
}
"""The functions that set defaults, by group and kind."""

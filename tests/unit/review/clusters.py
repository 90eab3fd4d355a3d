"""Clusters with policies for the tests of this folder."""

from typing import Any

from app.bootstrap.rules import rules_for
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests.unit.objects.builders import Cluster, cluster

ADMISSION = "admissionregistration.k8s.io/v1"
EVERYTHING = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["*/*"],
}


def serving(version: str = "1.37") -> Cluster:
    """A cluster with the rules of a server, and the namespace `default`."""
    made = cluster(version)
    made.rules = rules_for(Profile(version=version))
    return made


def rule(resource: str, *operations: str, group: str = "", version: str = "v1") -> JsonObject:
    """A rule about one resource; all operations unless some are named."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations or ("*",)),
        "resources": [resource],
    }


def policy(*expressions: str, name: str = "p", rules: Any = None, **spec: Any) -> JsonObject:
    """A policy; by default about everything."""
    constraints = {"resourceRules": [EVERYTHING] if rules is None else rules}
    constraints |= spec.pop("constraints", {})
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": constraints,
            "validations": [{"expression": expression} for expression in expressions],
            **spec,
        },
    }


def binding(*actions: str, name: str = "b", to: str = "p", **spec: Any) -> JsonObject:
    """A binding; it denies unless other actions are given."""
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": to, "validationActions": list(actions or ("Deny",)), **spec},
    }


def config_map(name: str = "c", namespace: str = "default", **more: Any) -> JsonObject:
    """A ConfigMap."""
    labels = {"labels": more.pop("labels")} if "labels" in more else {}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **labels},
        **more,
    }

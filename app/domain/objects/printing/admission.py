"""Tables of webhook configurations and admission policies.

Parity: api.md 6, "Columns"; the printers of the real server.
"""

from app.domain.objects.printing import cells
from app.domain.objects.printing.tables import Cells, Row
from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_UNSET = "<unset>"


def _configuration(tree: JsonObject, now: Instant) -> Cells:
    return [cells.name(tree), len(json_tree.objects(tree, "webhooks")), cells.age(tree, now)]


def _validating_policy(tree: JsonObject, now: Instant) -> Cells:
    return _policy(tree, "validations", now)


def _mutating_policy(tree: JsonObject, now: Instant) -> Cells:
    return _policy(tree, "mutations", now)


def _policy(tree: JsonObject, steps: str, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    kind = json_tree.mapping(spec, "paramKind")
    parameters = f"{json_tree.text(kind, 'apiVersion')}/{json_tree.text(kind, 'kind')}"
    return [
        cells.name(tree),
        len(json_tree.objects(spec, steps)),
        parameters if "paramKind" in spec else _UNSET,
        cells.age(tree, now),
    ]


def _binding(tree: JsonObject, now: Instant) -> Cells:
    spec = json_tree.mapping(tree, "spec")
    return [
        cells.name(tree),
        json_tree.text(spec, "policyName"),
        _parameters(json_tree.mapping(spec, "paramRef")),
        cells.age(tree, now),
    ]


def _parameters(reference: JsonView) -> str:
    """The parameters that a binding names; whether they have a namespace cannot be told here."""
    name = json_tree.text(reference, "name")
    if name:
        return f"{json_tree.text(reference, 'namespace') or '*'}/{name}"
    return _printed(json_tree.mapping(reference, "selector")) if "selector" in reference else _UNSET


def _printed(selector: JsonView) -> str:
    """A label selector as the Go type prints itself."""
    labels = json_tree.labels(selector, "matchLabels")
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{json_tree.text(term, 'key')},"
        f"Operator:{json_tree.text(term, 'operator')},"
        f"Values:[{' '.join(json_tree.texts(term, 'values'))}],}},"
        for term in json_tree.objects(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


_BINDING_COLUMNS = "Name, PolicyName, ParamRef, Age"

ROWS: tuple[Row, ...] = (
    (
        api_groups.ADMISSION_REGISTRATION,
        "mutatingadmissionpolicies",
        "Name, #Mutations, ParamKind, Age",
        _mutating_policy,
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "mutatingadmissionpolicybindings",
        _BINDING_COLUMNS,
        _binding,
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "mutatingwebhookconfigurations",
        "Name, #Webhooks, Age",
        _configuration,
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "validatingadmissionpolicies",
        "Name, #Validations, ParamKind, Age",
        _validating_policy,
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "validatingadmissionpolicybindings",
        _BINDING_COLUMNS,
        _binding,
    ),
    (
        api_groups.ADMISSION_REGISTRATION,
        "validatingwebhookconfigurations",
        "Name, #Webhooks, Age",
        _configuration,
    ),
)

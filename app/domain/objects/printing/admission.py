"""Tables of webhook configurations and admission policies.

Parity: api.md 6, "Columns"; the printers of the real server.
"""

from app.domain.objects.printing import cells
from app.domain.objects.printing.cells import Row
from app.domain.objects.printing.tables import UNSET, Cell
from app.domain.values import api_groups, json_tree, selectors
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


def _kind(tree: JsonObject, _: Instant) -> Cell:
    kind = json_tree.mapping(tree, "spec", "paramKind")
    shown = f"{meta.api_version(kind)}/{meta.kind(kind)}"
    return shown if "paramKind" in meta.spec(tree) else UNSET


def _parameters(tree: JsonObject, _: Instant) -> Cell:
    """The parameters that a binding names.

    `*` stands for a missing namespace, because it is unknown here whether they are namespaced.
    """
    reference = json_tree.mapping(tree, "spec", "paramRef")
    name = entries.name(reference)
    if name:
        return f"{json_tree.text(reference, 'namespace') or '*'}/{name}"
    if "selector" not in reference:
        return UNSET
    return selectors.label_selector_text(json_tree.mapping(reference, "selector"))


_BINDING = cells.table(
    "Name, PolicyName=.spec.policyName, ParamRef, Age", {"ParamRef": _parameters}
)
_CONFIGURATION = cells.table("Name, #Webhooks=+webhooks, Age")

ROWS: tuple[Row, ...] = tuple(
    (api_groups.ADMISSION_REGISTRATION, resource, printer)
    for resource, printer in (
        (
            "mutatingadmissionpolicies",
            cells.table("Name, #Mutations=+spec.mutations, ParamKind, Age", {"ParamKind": _kind}),
        ),
        (
            "validatingadmissionpolicies",
            cells.table(
                "Name, #Validations=+spec.validations, ParamKind, Age", {"ParamKind": _kind}
            ),
        ),
        ("mutatingadmissionpolicybindings", _BINDING),
        ("validatingadmissionpolicybindings", _BINDING),
        ("mutatingwebhookconfigurations", _CONFIGURATION),
        ("validatingwebhookconfigurations", _CONFIGURATION),
    )
)

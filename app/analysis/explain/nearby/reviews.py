"""The policies and webhooks that refuse a write, which its message names.

Belongs here: what they check, and what would let the write pass. Who wrote them is in the log.
"""

import re
from collections.abc import Callable, Iterator

from app.analysis.explain.reasons import listed
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonView

_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '(\S+)' with binding '(\S+)' denied request: (.*)", re.DOTALL
)
_HOOK = re.compile(r'admission webhook "(\S+)" denied the request')

_CONFIGURATIONS = (
    api_resources.VALIDATING_WEBHOOK_CONFIGURATIONS,
    api_resources.MUTATING_WEBHOOK_CONFIGURATIONS,
)


def refusing(views: Views, message: str) -> Iterator[ObjectKey]:
    """The policy and the binding that refused, or the configurations with the webhook that did."""
    if policy := _POLICY.search(message):
        yield ObjectKey(*api_resources.ADMISSION_POLICIES, "", policy[1])
        yield ObjectKey(*api_resources.ADMISSION_POLICY_BINDINGS, "", policy[2])
    elif hook := _HOOK.search(message):
        for kind in _CONFIGURATIONS:
            for key in views.objects.keys(*kind):
                hooks = json_tree.objects(views.objects.get(key) or {}, "webhooks")
                if any(entries.name(one) == hook[1] for one in hooks):
                    yield key


def check(policy: JsonView, message: str) -> str:
    """The expression of a policy that was false; empty where several may have been."""
    denial = _POLICY.search(message)
    said = "" if denial is None else denial[3].strip()
    rules = [*json_tree.objects(meta.spec(policy), "validations")]
    expressions = [" ".join(json_tree.text(one, "expression").split()) for one in rules]
    fitting = [
        text
        for one, text in zip(rules, expressions, strict=True)
        if json_tree.text(one, "message").strip() == said or f"failed expression: {text}" in said
    ]
    return fitting[0] if len(fitting) == 1 else ""


def remedy(
    views: Views, message: str, template: ObjectKey | None, sees_key: Callable[[ObjectKey], bool]
) -> str:
    """The changes of which any one lets a claim of a template pass; empty where none is known."""
    options: list[str] = []
    hooks: list[str] = []
    for key in refusing(views, message):
        tree = views.objects.get(key)
        if tree is None or not sees_key(key):
            continue
        if key[:2] in _CONFIGURATIONS:
            hooks.append(key.name)
        elif key[:2] == api_resources.ADMISSION_POLICY_BINDINGS:
            options.append(f"delete ValidatingAdmissionPolicyBinding {key.name}")
        elif (wanted := check(tree, message)) and template is not None and sees_key(template):
            name = f"{template.name} in namespace {template.namespace}"
            options.append(
                f"create ResourceClaimTemplate {name} anew, with claims for which {wanted}"
            )
    if hooks:
        options.append(f"take the webhook out of configuration {listed(hooks, len(hooks))}")
    return ", or ".join(options)

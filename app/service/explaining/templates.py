"""Claims of a waiting pod whose templates ask for something else by now.

A claim keeps the spec that its template had when the claim was made. A user who repairs a template
has to make the pod anew.
"""

from app.analysis.explain import sources
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.object_history import flat
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.log import EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining.evidence import Evidence


async def told(evidence: Evidence, pod: JsonObject) -> list[Reason]:
    """The writes of templates after the claims of the pod were made from them."""
    objects = evidence.views.objects
    facts = pods.facts(pod)
    reasons: list[Reason] = []
    for entry in facts.entries:
        named = pods.entry_claim(facts, entry)
        if not entry.template or not named.name:
            continue
        claim = claim_key(facts.namespace, named.name)
        key = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, facts.namespace, entry.template)
        tree, written = objects.get(claim), objects.event(key)
        if tree is None or written is None or dra.allocation(tree) is not None:
            continue
        differences = _differences(meta.spec(tree), meta.spec(meta.spec(written.object)))
        is_newer = written.revision > objects.created(claim)
        if not differences or not is_newer or not evidence.sight.sees(written):
            continue
        how = "made anew" if written.type is EventType.OBJECT_CREATED else "changed"
        text = f"template {key.namespace}/{key.name} was {how} {sources.by(written)}, after claim "
        text += (
            f"{claim.name} was made from it: a claim keeps what it asks for, until it is deleted"
        )
        children = [Reason(text=one) for one in differences[:NAMES_MAX]]
        if (more := len(differences) - NAMES_MAX) > 0:
            children.append(Reason(text=f"{more} more {'field' if more == 1 else 'fields'} differ"))
        reasons.append(
            Reason(
                text=text, revision=written.revision, about=key, is_kept=True,
                children=tuple(children),
            )
        )  # fmt: skip
    return reasons


def _differences(claim: JsonView, template: JsonView) -> list[str]:
    """The fields in which the spec of a claim differs from that in its template."""
    asked, now = dict(flat(claim)), dict(flat(template))
    return [
        f"{path}: the claim has {_value(asked.get(path))}, the template {_value(now.get(path))}"
        for path in dict.fromkeys((*asked, *now))
        if asked.get(path) != now.get(path)
    ]


def _value(value: object) -> str:
    return "none" if value is None else str(value)

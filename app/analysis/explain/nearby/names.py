"""Names that differ a little from those of what exists: classes, templates, taints, labels."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis import scope
from app.analysis.explain import tainted
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.resources import claim_key
from app.domain.devices.nodes import Node
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.tolerations import tolerates


def classes(views: Views, missing: Sequence[str]) -> Iterator[Reason]:
    """The classes whose names are most similar to those of missing classes."""
    known = [key.name for key in views.objects.keys(*api_resources.DEVICE_CLASSES)]
    for name in missing[:NAMES_MAX]:
        if near := scope.nearest(name, known):
            yield Reason(text=f"there is no device class {name}; {near}", is_kept=True)


def templates(views: Views, pod: pods.PodFacts) -> Iterator[Reason]:
    """For each missing claim template of the pod, similar names and other namespaces that have it.

    Nothing is returned for a reader who may not see the templates of those names.
    """
    missing = [key.name for key in missing_templates(views, pod)]
    known = [*views.objects.keys(*api_resources.RESOURCE_CLAIM_TEMPLATES)] if missing else []
    for name in missing[:NAMES_MAX]:
        yield from _similar("ResourceClaimTemplate", pod.namespace, name, known)
        others = [key for key in known if key.name == name][:NAMES_MAX]
        if others:
            where = listed([key.namespace for key in others], len(others))
            noun = counts.plural(len(others), "namespace")
            yield Reason(
                text=f"there is a ResourceClaimTemplate {name} in {noun} {where}, and a pod can "
                "only use templates of its own namespace",
                is_kept=True,
                rests_on=tuple(others),
            )


def claims(views: Views, pod: pods.PodFacts) -> Iterator[Reason]:
    """For each missing claim that the pod names, the claims of its namespace with similar names.

    Those that were made for other pods are left out: no second pod can use them.
    """
    named = dict.fromkeys(entry.claim for entry in pod.entries if entry.claim)
    missing = [name for name in named if views.objects.get(claim_key(pod.namespace, name)) is None]
    keys = views.objects.keys(*api_resources.RESOURCE_CLAIMS, pod.namespace) if missing else ()
    known = [key for key in keys if not meta.owners(views.objects.get(key) or {})]
    for name in missing[:NAMES_MAX]:
        yield from _similar("ResourceClaim", pod.namespace, name, known)


def missing_templates(views: Views, pod: pods.PodFacts) -> list[ObjectKey]:
    """The claim templates that do not exist, and from which a claim has yet to be made."""
    keys = [
        ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, pod.namespace, entry.template)
        for entry in pod.entries
        if entry.template and pods.entry_claim(pod, entry).problem
    ]
    return [key for key in dict.fromkeys(keys) if views.objects.get(key) is None]


def tolerations(views: Views, pod: JsonObject, taints: Iterable[str]) -> Iterator[Reason]:
    """The tolerations of the pod's claims that nearly fit a taint, by its key or a similar one.

    `taints` are texts. Requests that tolerate a taint are left out. Those of the pod itself that
    name the key of a taint are said, too: they are for the taints of nodes alone.
    """
    lines: dict[str, None] = {}
    ordered = [(text, _taint_of(text)) for text in sorted(taints)]
    facts = pods.facts(pod)
    for named in pods.named_claims(facts) if ordered else ():
        claim = views.objects.get(claim_key(facts.namespace, named.name or "")) or {}
        for request in dra.requests(claim):
            for wish in (request.exactly, *request.first_available):
                wished = () if wish is None else wish.tolerations
                for taint, tree in ordered:
                    if any(tolerates(toleration, tree) for toleration in wished):
                        continue
                    for toleration in wished:
                        if is_near(str(tree["key"]), str(toleration.get("key") or "")):
                            text = f"request {request.name} of claim {named.name} tolerates "
                            text += f"{tainted.toleration_text(toleration)}, which does not fit "
                            lines[f"{text}taint {taint}"] = None
    for toleration in core.tolerations_of(meta.spec(pod)):
        for taint, tree in ordered:
            if toleration.get("key") and tolerates(toleration, tree):
                text = f"the pod tolerates {tainted.toleration_text(toleration)} itself, which is "
                lines[f"{text}for taints of nodes; a request has to tolerate taint {taint}"] = None
    for text in list(lines)[:NAMES_MAX]:
        yield Reason(text=text, is_kept=True)


def labels(selector: JsonView, known: Sequence[Node]) -> Iterator[Reason]:
    """The labels of nodes that are nearly those which a selector names.

    These are labels with a wanted value and a similar key, and those with the key and other values.
    """
    nodes_of: dict[str, list[str]] = {}
    for term in selector.get("nodeSelectorTerms") or ():
        for one in core.requirements(term):
            for node in known:
                for key, value in node.labels.items():
                    if one.operator != "In" or (key == one.key) == (value in one.values):
                        continue
                    # Values such as `true` are those of many keys that mean something else.
                    if is_near(one.key, key):
                        nodes_of.setdefault(f"{key}={value}", []).append(node.name)
    for label, names in list(nodes_of.items())[:NAMES_MAX]:
        have = f"{counts.plural(len(names), 'node')} {listed(names, len(names))} "
        have += counts.verb(len(names), "has")
        yield Reason(text=f"{have} {label}", is_kept=True)


def is_near(key: str, other: str) -> bool:
    """Whether two keys `DOMAIN/NAME` may have been meant to be one.

    Keys of one owner share a domain, so the names are compared by themselves. Equal names may be of
    any domains.
    """
    domain, _, name = key.rpartition("/")
    other_domain, _, other_name = other.rpartition("/")
    if name == other_name:
        return True
    is_one_owner = domain == other_domain or bool(scope.alike(domain, [other_domain]))
    return is_one_owner and bool(scope.alike(name, [other_name]))


def _similar(kind: str, namespace: str, name: str, known: Sequence[ObjectKey]) -> Iterator[Reason]:
    """The objects of a namespace whose names are similar to that of a missing one."""
    here = {key.name: key for key in known if key.namespace == namespace}
    if alike := scope.alike(name, here):
        yield Reason(
            text=f"there is no {kind} {name} in namespace {namespace}; do you mean "
            f"{' or '.join(alike)}?",
            is_kept=True,
            rests_on=tuple(here[one] for one in alike),
        )


def _taint_of(text: str) -> JsonObject:
    """The taint of a text `key=value:effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}

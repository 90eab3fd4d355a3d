"""Names that differ a little from the names of what exists: classes, taints, labels of nodes."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis import scope
from app.analysis.explain import tainted
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.controllers.resources import claim_key
from app.domain.devices.nodes import Node
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
                        if _is_near(str(tree["key"]), str(toleration.get("key") or "")):
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


def _taint_of(text: str) -> JsonObject:
    """The taint of a text `key=value:effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _is_near(key: str, other: str) -> bool:
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
                    if _is_near(one.key, key):
                        nodes_of.setdefault(f"{key}={value}", []).append(node.name)
    for label, names in list(nodes_of.items())[:NAMES_MAX]:
        have = f"{counts.plural(len(names), 'node')} {listed(names, len(names))} "
        have += counts.plural(len(names), "has")
        yield Reason(text=f"{have} {label}", is_kept=True)

"""The labels by which a pod chooses its nodes, and the labels of nodes that it does not choose."""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.explain.nearby import origins
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.selectors import NodeSelectorTerm, requirement_text

_Labels = Mapping[str, Mapping[str, str]]
"""The labels of nodes, by node."""


def unmatched(
    views: LiveViews, pod: JsonObject, names: Sequence[str], owner: str = "the pod"
) -> Iterator[Reason]:
    """The labels that a pod's node selector and node affinity require and these refused nodes lack.

    The message of the scheduler names neither the label nor its value. `owner` is what is said to
    want them.
    """
    if not names:
        return
    spec = pod_spec.read(pod)
    nodes = {
        name: meta.labels(views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {})
        for name in names
    }
    for key, value in spec.node_selector:
        lacking = {name: has for name, has in nodes.items() if has.get(key) != value}
        if lacking:
            text = f"the nodeSelector of {owner} wants {key}={value}"
            yield _reason(text, [key], lacking)
            yield from origins.of_label(views, pod, key, value)
    chosen = spec.node_affinity
    if chosen is None:
        return
    lacking = {name: has for name, has in nodes.items() if not chosen.matches(name, has)}
    if lacking:
        terms = [*filter(None, map(_term_text, chosen.terms))]
        keys = [one.key for term in chosen.terms for one in term.labels]
        text = f"the node affinity of {owner} wants {' or '.join(terms) or 'no node'}"
        yield _reason(text, [*dict.fromkeys(keys)], lacking)


def _term_text(term: NodeSelectorTerm) -> str:
    """A term as kubectl writes selectors: `zone in (a, b) and !spot`; empty for an ignored one."""
    labels = [requirement_text(one) for one in term.labels]
    fields = [f"{one.field}{'=' if one.equal else '!='}{one.value}" for one in term.fields]
    return " and ".join((*labels, *fields))


def _reason(wanted: str, keys: Sequence[str], lacking: _Labels) -> Reason:
    """The required labels, and those of the nodes instead; nodes with equal labels together."""
    groups: dict[str, list[str]] = {}
    for name, labels in lacking.items():
        having = [f"{key}={labels[key]}" for key in keys if key in labels]
        text = ", ".join(having) or f"no label {' or '.join(keys)}"
        groups.setdefault(text, []).append(name)
    values = [
        f"{counts.plural(len(names), 'node')} {listed(sorted(names), len(names))} "
        f"{counts.verb(len(names), 'has')} {text}"
        for text, names in groups.items()
        if keys
    ]
    rest = len(values) - NAMES_MAX
    more = f"; {counts.of(rest, 'more value')}" if rest > 0 else ""
    text = wanted + (f": {'; '.join(values[:NAMES_MAX])}{more}" if values else "")
    only = next(iter(lacking)) if len(lacking) == 1 else ""
    about = ObjectKey(*api_resources.NODES, "", only) if only else None
    return Reason(text=text, count=len(lacking), about=about, is_kept=True)

"""The judgement of a differing allocation: another choice that the rules allow, or a violation.

Several devices often fit. A scheduler that takes others than redra would breaks no rule. The
judge is the checker of allocations (`allocation.checking`), which reads slices, rules, classes and
claims anew; it gets the objects before the write.

Example: of a, b and c, all free, redra takes a. An allocation of b is another choice. One of b that
another claim holds, or that the selector of the request excludes, is a violation.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from app.analysis.verify.compare import DifferenceKind
from app.analysis.views import LiveViews
from app.domain.allocation import Quirks, checking
from app.domain.allocation.checking.claim_requests import asks_of
from app.domain.allocation.quirks import NUMBERS
from app.domain.allocation.selections import Selections
from app.domain.log import ObjectKey
from app.domain.objects.profile import GATES
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

_OF_SERVERS = "allocationTimestamp"
"""A field of an allocation that its writer or the API sets, and no rule of devices is about."""


class ChoiceJudge:
    """Judges allocations while a log is folded; the views stand before the allocation."""

    def __init__(self, views: LiveViews, quirks: Quirks) -> None:
        self._views = views
        self._quirks = frozenset(NUMBERS) - frozenset(quirks.repaired())
        self._selects = Selections()

    def judge(
        self,
        node: JsonView,
        claim: JsonObject,
        allocation: JsonView,
        changed: Mapping[ObjectKey, JsonObject | None] = MappingProxyType({}),
    ) -> tuple[DifferenceKind, tuple[str, ...]]:
        """The kind of a difference, with the rules that the allocation breaks.

        Those of another choice are rules that known issues of the release may break.

        `changed` are objects that were others when it was chosen, or not there. Patches change what
        slices publish, so nothing is judged while there are any.
        """
        patches = api_resources.RESOURCE_SLICE_PATCHES
        if any(changed.get(key, claim) for key in self._views.objects.keys(*patches)) or any(
            tree for key, tree in changed.items() if key[:2] == patches
        ):
            return DifferenceKind.DIFFERENT, ()
        written = {name: part for name, part in allocation.items() if name != _OF_SERVERS}
        case = self._case(node, claim, written, changed)
        findings = checking.check(case, [written])
        broken = tuple(finding.problem for finding in findings if not finding.quirk)
        if broken:
            return DifferenceKind.VIOLATION, broken
        return DifferenceKind.OTHER_CHOICE, tuple(
            f"{finding.problem} (known issue {finding.quirk.upper()})" for finding in findings
        )

    def _case(
        self,
        node: JsonView,
        claim: JsonObject,
        allocation: JsonView,
        changed: Mapping[ObjectKey, JsonObject | None],
    ) -> checking.Case:
        """The inputs as they were: of a claim that takes single devices, only their pools.

        Pools of one name share their counters (Q3), whatever their driver is.
        """
        profile, features = self._views.profile, self._views.features
        classes = dict(self._objects(api_resources.DEVICE_CLASSES, changed))
        takes_all = any(
            ask.takes_all for alternatives in asks_of(claim, classes) for ask in alternatives
        )
        pools = {result.id[1] for result in dra.results_of(allocation)}
        slices = self._objects(api_resources.RESOURCE_SLICES, changed)
        rules = (
            self._objects(api_resources.DEVICE_TAINT_RULES, changed) if features.taint_rules else ()
        )
        return checking.Case(
            node=changed.get(ObjectKey(*api_resources.NODES, "", meta.name(node))) or node,
            claims=[claim],
            classes=classes,
            slices=[tree for _, tree in slices if takes_all or dra.pool_name(tree) in pools],
            selects=self._selects,
            rules=[tree for _, tree in rules],
            held=[
                tree
                for _, tree in self._objects(api_resources.RESOURCE_CLAIMS, changed)
                if any(takes_all or result.id[1] in pools for result in dra.results(tree))
            ],
            gates={gate: profile.enabled(gate) for gate in GATES},
            variant=features.variant().value,
            quirks=self._quirks,
            cleaned_configs=features.cleaned_configs,
            ordered=False,
        )

    def _objects(
        self, kind: tuple[str, str], changed: Mapping[ObjectKey, JsonObject | None]
    ) -> Iterator[tuple[str, JsonObject]]:
        """The readable objects of a kind with their names, in order."""
        views = self._views
        others = {key for key in changed if key[:2] == kind}
        for key in sorted(others.union(views.objects.keys(*kind))):
            tree = changed[key] if key in changed else views.objects.get(key)
            if tree is not None and (key in changed or key not in views.unreadable):
                yield key.name, tree

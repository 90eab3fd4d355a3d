"""Differences in what controllers write under another release: texts, and fields of objects.

Differences that belong to a pod with a different outcome, or to counts of pods, follow from the
decisions and are counted, not listed. The same texts in another order, or repeated, do not count as
different. Texts that change by the same words are one entry.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.analysis import masks
from app.analysis.diff import words
from app.analysis.diff.words import Rewritten
from app.analysis.rehearse.attribution import Finding
from app.analysis.replay import differences
from app.analysis.replay.differences import Aspect, Compared, Sides
from app.analysis.replay.traces import Trace
from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups, api_resources
from app.domain.values.json_tree import JsonObject

RULES_CONDITION = "a rule's condition"
"""The subject of a changed text in the status of a DeviceTaintRule."""

TEXTS = frozenset((Aspect.CONDITIONS, Aspect.RULES, Aspect.SAID))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Changed texts and changed fields.

    `following` are the objects whose changes follow from decisions. `subjects` has, by finding, all
    objects that show it.
    """

    texts: tuple[Rewritten, ...]
    fields: tuple[Rewritten, ...]
    following: frozenset[ObjectKey]
    subjects: Mapping[Finding, frozenset[ObjectKey]]

    @property
    def loses_rules(self) -> bool:
        """Whether a DeviceTaintRule loses its status: no controller reads it there."""
        return any(each.what == RULES_CONDITION and not each.after for each in self.texts)

    def hidden(self, subjects: Mapping[Finding, frozenset[ObjectKey]]) -> frozenset[Finding]:
        """The findings whose objects all follow from decisions here: nobody knows if they show."""
        return frozenset(each for each, keys in subjects.items() if keys <= self.following)


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Subjects that change for another reason: pods with different outcomes, by uid, and objects.

    The objects are those that the other release refuses or accepts without some fields.
    """

    pods: frozenset[str]
    objects: frozenset[ObjectKey]


def changed(
    before: Trace, after: Trace, following: Following, schemas: Schemas, unlike: frozenset[str]
) -> Contents:
    """The differences in contents. `unlike` are uids about which nothing can be concluded."""
    compared = differences.compare(before, after, schemas)
    texts: dict[tuple[str, ...], Rewritten] = {}
    fields: dict[tuple[str, ...], Rewritten] = {}
    subjects: dict[Finding, set[ObjectKey]] = {}
    consequences: set[ObjectKey] = set()
    for sides in compared.different.values():
        key = before.keys.get(sides.uid) or after.keys.get(sides.uid)
        if key is None or _concerns(sides.uid, unlike, before, after):
            continue
        is_following = bool(following.pods) and _counts_pods(key)
        if key in following.objects or _concerns(sides.uid, following.pods, before, after):
            is_following = True
        if is_following:
            consequences.add(key)
        elif sides.aspect in TEXTS and not sides.is_order:
            for what, left, right in _texts(sides):
                parts = words.parts(left, right)
                words.add(texts, what, *parts, key, whole=right or left)
                subjects.setdefault(("text", what, *parts), set()).add(key)
        elif sides.aspect in (Aspect.DEVICES, Aspect.FINAL):
            for what, left, right in _fields(sides, key):
                words.add(fields, what, left, right, key)
                subjects.setdefault(("field", what, left, right), set()).add(key)
    return Contents(
        texts=tuple(texts.values()),
        fields=tuple(fields.values()),
        following=frozenset(consequences),
        subjects={finding: frozenset(keys) for finding, keys in subjects.items()},
    )


def counted(compared: Compared) -> tuple[dict[str, int], dict[str, int]]:
    """The number of equal decisions and the number of all decisions, by aspect."""
    different = Counter(sides.aspect for sides in compared.different.values())
    aspects = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.CONDITIONS, Aspect.SAID)
    same = {aspect.value: compared.same[aspect] for aspect in aspects}
    every = {aspect.value: compared.same[aspect] + different[aspect] for aspect in aspects}
    present = [name for name, count in every.items() if count]
    return {name: same[name] for name in present}, {name: every[name] for name in present}


def _concerns(uid: str, pods: frozenset[str], before: Trace, after: Trace) -> bool:
    """Whether an object is one of these pods, or a claim of one of them."""
    if uid in pods:
        return True
    owners = {before.owner_of.get(uid), after.owner_of.get(uid)}
    users = before.users.get(uid, set()) | after.users.get(uid, set())
    return bool(owners & pods or users & pods)


def _counts_pods(key: ObjectKey) -> bool:
    """Whether the status of an object counts pods: a workload, a rule, a budget."""
    is_workload = key.group in (api_groups.APPS, api_groups.BATCH, api_groups.POLICY)
    return is_workload or (key.group, key.resource) == api_resources.DEVICE_TAINT_RULES


def _texts(sides: Sides) -> Iterator[tuple[str, str, str]]:
    """Pairs of corresponding texts, in their order."""
    # The scheduler writes the same text into a condition and an Event.
    what = RULES_CONDITION if sides.aspect is Aspect.RULES else "conditions and Events"
    left = [step.text for step in sides.only_recorded]
    right = [step.text for step in sides.only_again]
    for number in range(max(len(left), len(right))):
        yield (
            what,
            left[number] if number < len(left) else "",
            right[number] if number < len(right) else "",
        )


def _fields(sides: Sides, key: ObjectKey) -> Iterator[tuple[str, str, str]]:
    kind = key.resource
    if sides.aspect is Aspect.DEVICES:
        if len(sides.recorded) != len(sides.again):
            yield f"allocations of {kind}", str(len(sides.recorded)), str(len(sides.again))
            return
        for left, right in zip(sides.recorded, sides.again, strict=True):
            for path, was, now in masks.changes(left, right):
                yield f"{kind} status.allocation.{path}", _shown(was), _shown(now)
        return
    if not (sides.recorded and sides.again):
        side = "exists" if sides.recorded else ""
        yield kind, side, "" if side else "exists"
        return
    before, after = _without_texts(sides.recorded[0]), _without_texts(sides.again[0])
    for path, was, now in masks.changes(before, after):
        # Allocations are compared as decisions, not as parts of final objects.
        if path.startswith("status.allocation"):
            continue
        yield f"{kind} {path}", _shown(was), _shown(now)


def _without_texts(tree: JsonObject) -> JsonObject:
    """The object without its conditions, which are compared as texts."""
    status = tree.get("status")
    if not isinstance(status, dict):
        return tree
    rest = {name: part for name, part in status.items() if name != "conditions"}
    others = {name: part for name, part in tree.items() if name != "status"}
    return {**others, "status": rest} if rest else others


def _shown(value: object) -> str:
    return "" if value is None else canonical_json(value).decode()

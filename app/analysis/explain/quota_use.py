"""The claims that use up the quota which refused a claim, and how its amount is counted."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from app.analysis.explain import stuck
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.domain.controllers import pods
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.objects.quota import limits, usage
from app.domain.objects.quota.usage import DEVICES_SUFFIX
from app.domain.values import api_resources, counts, quantity
from app.domain.values.fields import core, dra, paths
from app.domain.values.json_tree import JsonView
from app.domain.values.texts import notation

_hard = paths.mapping("spec", "hard")

_COUNTED = (api_resources.PODS, api_resources.RESOURCE_CLAIMS)
"""The kinds whose objects are named as those that use a quota."""

_EXCEEDED = re.compile(r"exceeded quota: ([^,]+), requested: (.*?), used: (.*?), limited: (.*)")
"""Upstream's refusal; each exceeded resource name is followed by its amount."""


def reasons(
    views: Views,
    namespace: str,
    refusal: str,
    spec: JsonView,
    *,
    noun: str = "claim",
    template: ObjectKey | None = None,
) -> Iterator[Reason]:
    """The claims and pods that use up the quota, unused claims first.

    `refusal` is the error text when a claim of the namespace could not be created, or what `noun`
    names instead; `spec` is the spec of that claim, from its `template`. That it is never made is
    said of what the quota allows by now, as it may have been changed since the refusal.
    """
    exceeded = _EXCEEDED.search(refusal)
    if exceeded is None:
        return
    quota = exceeded[1]
    quota_key = ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, quota)
    present = views.objects.get(quota_key) or {}
    limited = _limited(refusal)
    for part in exceeded[2].split(","):
        name, _, requested = part.rpartition("=")
        for largest in _largest(name, spec):
            yield replace(largest, rests_on=() if template is None else (template,))
        yield from _users(views, namespace, quota, name, limited.get(name, ""))
        if (allowed := limit(present, name)) and _more(requested, allowed):
            counted, most = notation.alike_texts(requested, allowed)
            yield Reason(
                text=f"one such {noun} counts for {counted}, and quota {quota} has "
                f"{most} of {name} in all: it is never made",
                is_kept=True,
                rests_on=(quota_key,),
            )


def remedies(
    views: Views, namespace: str, refusal: str, sees_key: Callable[[ObjectKey], bool]
) -> Iterator[str]:
    """The amounts that a quota must allow by now to let the refused claim in.

    None where the quota is gone, and none of what it has room for by now. A reader who may not see
    the quota gets the amounts that the refusal itself leads to.
    """
    quota = ObjectKey(*api_resources.RESOURCE_QUOTAS, namespace, refusing(refusal))
    is_seen = sees_key(quota)
    hard = _hard(views.objects.get(quota) or {}) if is_seen else _limited(refusal)
    for name, wanted, used in _needed(views, namespace, refusal):
        if is_seen and (name not in hard or _allows(hard[name], wanted + used)):
            continue
        (total,) = notation.exactly_alike([wanted + used])
        # What alone is more than the quota has in all does not fit into an empty one, either.
        other = ", or delete what uses it" if _allows(hard.get(name), wanted) else ""
        yield f"have quota {refusing(refusal)} allow {total} of {name}{other}"


def refusing(refusal: str) -> str:
    """The name of the quota that refused a claim; empty for another refusal."""
    exceeded = _EXCEEDED.search(refusal)
    return "" if exceeded is None else exceeded[1]


def has_room(views: Views, namespace: str, refusal: str, quota: JsonView) -> bool:
    """Whether the quota that refused a claim allows it by now."""
    hard = _hard(quota)
    return all(
        name not in hard or _allows(hard[name], wanted + used)
        for name, wanted, used in _needed(views, namespace, refusal)
    )


def _limited(refusal: str) -> dict[str, str]:
    """The amounts that the quota of a refusal had then, by name."""
    exceeded = _EXCEEDED.search(refusal)
    parts = exceeded[4].split(",") if exceeded is not None else ()
    return dict(part.rpartition("=")[::2] for part in parts)


def _allows(hard: object, nanos: int) -> bool:
    """Whether a limit, as it is written, allows an amount; False for one that cannot be read."""
    try:
        return nanos <= quantity.parse(str(hard)).nanos
    except quantity.QuantityError:
        return False


def limits_exceeded(quota: JsonView, refusal: str) -> Iterator[tuple[str, str]]:
    """The names of a quota that a refused write exceeded, with the amounts that it allows."""
    exceeded = _EXCEEDED.search(refusal)
    for part in exceeded[2].split(",") if exceeded is not None else ():
        name = part.rpartition("=")[0]
        if now := limit(quota, name):
            yield name, now


def limits_exceeded_now(quota: JsonView) -> Iterator[tuple[str, str, str]]:
    """The names of which more is in use than a quota allows, with both amounts."""
    used = core.quota_used(quota)
    for name, allowed in sorted(_hard(quota).items()):
        if name in used and _more(str(used[name]), str(allowed)):
            in_use, most = notation.alike_texts(used[name], allowed)
            yield name, in_use, most


def limits_reached(quota: JsonView) -> Iterator[tuple[str, str]]:
    """The names that a quota has no room for by its status, with the amounts that it allows."""
    for name, used in sorted(core.quota_used(quota).items()):
        now = limit(quota, name)
        if now and not _more(now, str(used)):
            yield name, now


def limit(quota: JsonView, name: str) -> str:
    """The amount of a name that a quota allows; empty if it does not limit the name."""
    return str(_hard(quota).get(name, ""))


def allows_more(name: str, amount: str, quota: JsonView) -> bool:
    """Whether a quota does not limit a name, or allows more of it than an amount."""
    allowed = limit(quota, name)
    return not allowed or _more(allowed, amount)


def _needed(views: Views, namespace: str, refusal: str) -> Iterator[tuple[str, int, int]]:
    """The amounts of the refused claim and of the present use for each exceeded name, in nanos."""
    exceeded = _EXCEEDED.search(refusal)
    for part in exceeded[2].split(",") if exceeded is not None else ():
        name, _, requested = part.rpartition("=")
        try:
            wanted = quantity.parse(requested).nanos
        except quantity.QuantityError:
            continue
        yield name, wanted, sum(nanos for _, nanos in _amounts(views, namespace, name))


def of_quota(views: Views, namespace: str, quota: str, tree: JsonView) -> Iterator[Reason]:
    """The use of a quota by its status, and the claims and pods that use it."""
    used = core.quota_used(tree)
    for name, limit in sorted(_hard(tree).items()):
        users: tuple[Reason, ...] = ()
        if not limits.places_of(name).isdisjoint(_COUNTED):
            users = tuple(_users(views, namespace, quota, name, str(limit)))
        in_use, most = "an unknown amount", str(limit)
        if name in used:
            in_use, most = notation.alike_texts(used[name], limit)
        yield Reason(text=f"{in_use} of {most} {name} used", children=users)


def _more(requested: str, limited: str) -> bool:
    try:
        return quantity.parse(requested).nanos > quantity.parse(limited).nanos
    except quantity.QuantityError:
        return False


def _largest(name: str, spec: JsonView) -> Iterator[Reason]:
    """The alternatives that determine the amount for which a claim counts against a class."""
    class_name = name.removesuffix(DEVICES_SUFFIX)
    if class_name == name:
        return
    for request in dra.requests({"spec": spec}):
        asks = [ask for ask in request.first_available if ask.device_class_name == class_name]
        if len(request.first_available) < 2 or not asks:
            continue
        number, largest = max(
            ((usage.devices_of(ask.allocation_mode, ask.count), ask) for ask in asks),
            key=lambda counted: counted[0],
        )
        text = f"request {request.name} counts like its alternative {largest.name}, which asks for "
        text += f"{counts.of(number, 'device')} of class {class_name}: "
        yield Reason(
            text=f"{text}a quota counts the largest alternative, whichever one is taken",
            is_kept=True,
        )


def _users(views: Views, namespace: str, quota: str, name: str, limit: str) -> Iterator[Reason]:
    """The claims that use up a name of the quota, and the pods if the quota counts both.

    Amounts have the notation of the limit. Devices also count under the names of extended
    resources. Parity: objects.md 15.3.
    """
    used: list[tuple[str, ObjectKey, int]] = []
    named = cache(lambda: frozenset(_named(views, namespace)))
    for key, nanos in _amounts(views, namespace, name):
        is_claim = key[:2] == api_resources.RESOURCE_CLAIMS
        idle = _idle(views, key, named) if is_claim else ""
        used.append((idle, key, nanos))
    if not used:
        return
    used.sort(key=lambda one: (not one[0], -one[2], one[1]))
    shown = used[:NAMES_MAX]
    amounts = [nanos for _, _, nanos in shown]
    total, *each = notation.alike([sum(nanos for _, _, nanos in used), *amounts], _form(limit))
    children = tuple(
        _user(idle, key, amount) for (idle, key, _), amount in zip(shown, each, strict=True)
    )
    if len(used) > NAMES_MAX:
        left = used[NAMES_MAX:]
        unused = sum(bool(idle) for idle, _, _ in left)
        more = f", of which {unused} {counts.verb(unused, 'is')} of no use" if unused else ""
        children += (Reason(text=f"{_counted(left, 'more ')}{more}", count=len(left)),)
    text = f"{_counted(used)} {counts.verb(len(used), 'uses')} {total} of "
    yield Reason(text=f"{text}{name} of quota {quota}", children=children, count=len(used))


def _form(limit: str) -> quantity.QuantityFormat:
    """The notation of a limit; unknown for one that cannot be read."""
    try:
        return quantity.parse(limit).format
    except quantity.QuantityError:
        return quantity.QuantityFormat.UNKNOWN


def _amounts(views: Views, namespace: str, name: str) -> Iterator[tuple[ObjectKey, int]]:
    """The amount that each claim and pod of a namespace uses of a name of a quota, in nanos."""
    for place in sorted(limits.places_of(name)):
        for key in views.objects.keys(*place, namespace):
            amounts = limits.amounts_of(views.objects, place, views.objects.get(key) or {})
            amount = amounts.get(name)
            if amount is not None and amount.nanos:
                yield key, amount.nanos


def _counted(used: Sequence[tuple[str, ObjectKey, int]], before: str = "") -> str:
    """The number of claims and pods; `before` is put before each noun."""
    numbers = Counter(_noun(key) for _, key, _ in used)
    return " and ".join(counts.of(number, before + noun) for noun, number in numbers.items())


def _noun(key: ObjectKey) -> str:
    return "claim" if (key.group, key.resource) == api_resources.RESOURCE_CLAIMS else "pod"


def _named(views: Views, namespace: str) -> Iterator[str]:
    """The claims that unfinished pods of a namespace name."""
    for key in views.objects.keys(*api_resources.PODS, namespace):
        tree = views.objects.get(key) or {}
        if not core.is_finished(tree):
            yield from (each.name or "" for each in pods.named_claims(pods.facts(tree)))


def _idle(views: Views, key: ObjectKey, named: Callable[[], frozenset[str]]) -> str:
    """The reason why no pod uses a claim; empty for a claim in use, or `named` by a waiting pod."""
    tree = views.objects.get(key) or {}
    way = stuck.cause(views, key, tree)
    if way in (stuck.CONSUMER_GONE, stuck.CONSUMER_ENDED, stuck.UNPROTECTED):
        return way
    return "" if dra.consumers(tree) or key.name in named() else "it is reserved for no pod"


def _user(idle: str, key: ObjectKey, amount: str) -> Reason:
    text = f"{_noun(key)} {key.namespace}/{key.name} counts for {amount}"
    text += f", and nobody uses it: {idle}" if idle else ""
    return Reason(text=text, about=key, is_kept=bool(idle))

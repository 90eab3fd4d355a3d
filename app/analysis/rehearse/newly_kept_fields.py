"""Fields that would begin to be kept: applied, dropped so far, and kept by the other release.

A recorded object lacks what its release dropped. But `kubectl apply` leaves the whole configuration
in an annotation, which shows what was intended.
"""

from collections.abc import Iterable

import msgspec

from app.analysis.rehearse import versions
from app.analysis.rehearse.admission import FieldsKept, dropped_by
from app.analysis.replay.inputs import Input
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.values import well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject


def begins(inputs: Iterable[Input], source: Rules, target: Rules) -> list[FieldsKept]:
    """The fields that only the other release keeps, once for each object."""
    seen: set[tuple[ObjectKey, tuple[str, ...]]] = set()
    kept = []
    for given in inputs:
        texts = _texts(given, source, target)
        key = given.event.key
        if texts and (key, texts) not in seen:
            seen.add((key, texts))
            kept.append(
                FieldsKept(
                    key=key,
                    revision=given.event.revision,
                    author=versions.author_of(given),
                    texts=texts,
                )
            )
    return kept


def _texts(given: Input, source: Rules, target: Rules) -> tuple[str, ...]:
    event = given.event
    text = meta.annotations(event.object).get(well_known.LAST_APPLIED)
    kind = registry.find(event.key.group, event.key.resource)
    if not text or kind is None or source.profile.open_gates == target.profile.open_gates:
        return ()
    applied = _applied(str(text))
    group, version = registry.split_api_version(str(applied.get("apiVersion", "")))
    if (group, version) not in kind.group_versions:
        return ()
    tree = conversion.convert(
        applied, kind, registry.api_version(group, version), kind.storage_api_version
    )
    still = set(dropped_by(target, kind, tree, None)[0])
    return tuple(each for each in dropped_by(source, kind, tree, None)[0] if each not in still)


def _applied(text: str) -> JsonObject:
    """The configuration in an annotation, which anyone may have written; empty if unreadable."""
    try:
        tree = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return tree if isinstance(tree, dict) and isinstance(tree.get("spec"), dict) else {}

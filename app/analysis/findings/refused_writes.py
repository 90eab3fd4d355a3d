"""Writes that the API refused, and after which the object did not change any more."""

import re
from collections.abc import Callable, Iterator

from app.analysis.chronicle import Chronicle
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.domain.log import ObjectKey, Revision
from app.domain.values import counts
from projections import timeline_kinds

_OF_OBJECT = re.compile(r'(?:(?:Forbidden|Invalid): )?\S+ "[^"]*" is (forbidden|invalid): ')
"""The part of a refusal with the name of the object, and before it the reason, which it repeats."""


def writes(
    chronicle: Chronicle,
    until: Revision,
    namespace: str = "",
    *,
    sees: Callable[[ObjectKey], bool] = lambda _: True,
) -> Iterator[Finding]:
    """The objects that were last refused, by message; those that the reader does not see are none.

    A refused object without a name is reported with the workload or pod that asks for it.
    """
    groups: dict[str, dict[ObjectKey, Revision]] = {}
    for entry in chronicle.of_kind(timeline_kinds.WRITE_REFUSED, until=until):
        key = entry.subject
        if not key.name or (namespace and key.namespace != namespace) or not sees(key):
            continue
        if chronicle.about(key, until=until)[-1].revision != entry.revision:
            continue
        text = _OF_OBJECT.sub(r"\1: ", entry.text)
        groups.setdefault(text, {})[key] = entry.revision
    for text, refused in groups.items():
        newest = sorted(refused, key=lambda key: -refused[key])
        are = counts.verb(len(refused), "was")
        yield Finding(
            kind=FindingKind.REFUSED_WRITES,
            severity=Severity.WARNING,
            text=f"{counts.of(len(refused), 'object')} {are} not written: {text}",
            count=len(refused),
            present=len(refused),
            first=min(refused.values()),
            last=max(refused.values()),
            objects=tuple(Subject.of(key, refused[key]) for key in newest[:OBJECTS_SHOWN_MAX]),
        )


def unseen(chronicle: Chronicle) -> str:
    """A sentence that refused writes are not in the history; empty where it has one.

    A live history holds what was stored, and the sender of a refused write alone got the reason.
    """
    if chronicle.count_of_kind(timeline_kinds.WRITE_REFUSED, until=chronicle.revision):
        return ""
    return (
        "No refused write is in this history: who sent one got the reason, and audit logs have it."
    )

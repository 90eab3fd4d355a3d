"""The page of the reasons for one object, as a collapsible tree."""

import re
from collections.abc import Mapping, Sequence

from app.analysis.explain.questions import DEVICES, POOLS, ObjectExplanation
from app.analysis.explain.reasons import Reason
from app.analysis.recordings import uncertainty
from app.domain.allocation.reasons import causes
from app.domain.log import DECISION, ObjectKey
from app.domain.objects import registry
from app.domain.values import api_resources, counts
from app.domain.values.fields import decision_body
from app.domain.values.json_tree import JsonObject
from app.web.frame import Frame, render

OPEN_DEPTH = 3
"""Levels of the tree that are open at first."""

OPEN_SIZE = 12
"""The greatest number of reasons in a branch that is open at any depth."""

REASONS_MAX = 400
"""Reasons that are shown; the JSON has all."""


def page(
    frame: Frame, answer: ObjectExplanation, key: ObjectKey, parameters: Mapping[str, str]
) -> bytes:
    """The page; `parameters` are those of the question."""
    reasons, _ = bounded(answer.reason.children, REASONS_MAX, key)
    is_pod = (key.group, key.resource) == api_resources.PODS
    return render(
        "why.html",
        frame=frame,
        answer=answer,
        subject=registry.titled(answer.subject),
        key=key,
        parameters=parameters,
        reasons=reasons,
        has_object=is_known(key),
        notes=uncertainty.lines(answer.doubts),
        decision=_decision(answer.decision) if answer.decision else (),
        is_pod=is_pod,
        can_help=is_pod and answer.outcome not in _WAITS_NO_MORE,
        open_depth=OPEN_DEPTH,
        open_size=OPEN_SIZE,
    )


_WAITS_NO_MORE = frozenset(
    ("Deleted", "Evicted", "Failed", "Scheduled", "Succeeded", "Terminating")
)
"""The outcomes of pods that no change would help to a node."""


def bounded(
    reasons: Sequence[Reason], left: int, subject: ObjectKey | None = None
) -> tuple[list[JsonObject], int]:
    """The branches within the bound, and the number of reasons that may follow.

    With the subject of their page, reasons about other objects lead to the reasons of these.
    """
    shown: list[JsonObject] = []
    for number, reason in enumerate(reasons):
        if left <= 0:
            omitted = sum(one.size() for one in reasons[number:])
            text = f"{counts.of(omitted, 'more reason')} {counts.verb(omitted, 'is')} in the JSON "
            text += "of this answer"
            shown.append(_entry(Reason(text=text), [], subject))
            break
        children, left = bounded(reason.children, left - 1, (subject and reason.about) or subject)
        shown.append(_entry(reason, children, subject))
    return shown, left


def _entry(reason: Reason, children: list[JsonObject], subject: ObjectKey | None) -> JsonObject:
    """The reason in the form for the template; the revision is 0 if the text names it."""
    about = None if reason.about is None or not is_known(reason.about) else reason.about
    is_named = f"revision {reason.revision}" in reason.text
    return {
        "text": reason.text,
        "marked": reason.marked,
        "tally": 0 if reason.count == 1 or _says(reason.text, reason.count) else reason.count,
        "issues": ", ".join(reason.issues),
        "revision": 0 if is_named else reason.revision,
        "about": about,
        "why": None if subject is None or about == subject else about,
        "children": children,
        "size": reason.size(),
    }


def _says(text: str, count: int) -> bool:
    """Whether the text has the number as a word, such as 4 in "0 of 4 can be taken"."""
    return re.search(rf"(?<![\w./:-]){count}(?![\w./:-]*\w)", text) is not None


def is_known(key: ObjectKey) -> bool:
    """True if an object with this key has a page."""
    return (key.group, key.resource) not in (DEVICES, POOLS) and key.resource != DECISION.resource


def _is_of_another_class(cause: decision_body.CauseCount) -> bool:
    """Whether a cause is about devices of another class than the requested one; it comes last."""
    return causes.is_of_another_class(cause.cause, cause.about)


def _decision(body: JsonObject) -> list[tuple[str, str]]:
    """The recorded decision, as names and values."""
    decision, summary = decision_body.read(body), decision_body.summary_of(body)
    rows = [
        ("controller", decision.controller),
        ("outcome", decision.outcome),
        ("message", summary.message),
        ("node", summary.node),
        ("provoked by", f"revision {decision.cause}" if decision.cause else ""),
    ]
    for cause in sorted(summary.causes, key=_is_of_another_class):
        said = causes.text_of(cause.cause, cause.about)
        names = (("claim", cause.claim), ("request", cause.request))
        place = ", ".join(f"{noun} {name}" for noun, name in names if name)
        rows.append((place, f"{counts.of(cause.devices, 'device')}: {said}"))
    return [(name, value) for name, value in rows if value]

"""The failures with a pod that the log of a kubelet shows, as requests of it that were observed."""

from collections.abc import Iterator, Sequence

from app.analysis.explain.reasons import Reason
from app.domain.log import Event, EventType
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT
from app.domain.values import json_tree


def failures(requests: Sequence[Event]) -> Iterator[Reason]:
    """The newest failure with a pod that a kubelet logged; `requests` are newest first."""
    for event in requests:
        if _logged_verb(event) == KUBELET_FAILURE:
            text = f"the kubelet said (its log): {json_tree.text(event.object, 'message')}"
            yield Reason(text=text, revision=event.revision, about=event.key, is_kept=True)
            return


def is_logged(requests: Sequence[Event]) -> bool:
    """Whether a kubelet logged anything about a pod."""
    return any(_logged_verb(event) in (KUBELET_FAILURE, KUBELET_REPORT) for event in requests)


def _logged_verb(event: Event) -> str:
    is_request = event.type is EventType.REQUEST_OBSERVED
    return json_tree.text(event.object, "verb") if is_request else ""

"""Incidents that show in messages: about a pod or patch, or by the API refusing a request."""

from collections.abc import Iterator

from app.analysis.explain import pages
from app.analysis.scan.sightings import Sightings
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, meta

SAYINGS = (
    ("one-error-ends-all", "CEL runtime error"),
    ("all-mode-constraint-ends-all", "a claim constraint would not be satisfied"),
    ("all-mode-while-a-pool-changes", "is currently being updated"),
    ("scoring-fails-for-shared-claims", "is smaller than number of claims"),
    ("too-many-consumers", "must have at most 256 items"),
    ("too-many-devices", "exceeds the claim limit of"),
    ("allocation-without-a-time", "field is immutable"),
    ("admin-access-label-is-taken-away", "resource.kubernetes.io/admin-access: true"),
    ("quota-leaves-no-claim", "exceeded quota: "),
)
"""The incidents, each with words that only it causes."""

PATCH_FAILS = "patch-with-a-failing-selector"
NEEDS_LABEL = "admin-access-needs-a-label"
LOOKED_FOR = (*(incident for incident, _ in SAYINGS), PATCH_FAILS, NEEDS_LABEL)
NEEDED = {
    "allocation-without-a-time": '"AllocationTimestamp"',
    "quota-leaves-no-claim": 'resourceclaims.resource.k8s.io "',
    "one-error-ends-all": "running ",
    "all-mode-constraint-ends-all": "running ",
}
"""Further words without which the message means something else.

An error that ended the whole attempt begins with the plug-in that was running.
"""

SELECTOR_FAILED = "SelectorFailed"
"""The reason of Events about patches that were not applied."""

LABEL = "resource.kubernetes.io/admin-access: true"
"""The text of a refusal because of the missing label."""

REFUSED = (403, 422)
QUOTED_MAX = 300
"""Characters of a message that are quoted; longer ones end with an ellipsis."""


class Reports:
    """Reads each message about a pod or patch once."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._known: set[tuple[ObjectKey, str]] = set()

    def see(self, event: Event) -> None:
        """Processes the next event."""
        if event.type is EventType.REQUEST_OBSERVED:
            self._refusal(event)
        if event.type is EventType.OBJECT_DELETED or not event.is_about_object:
            return
        if event.key.resource == api_resources.EVENTS[1]:
            self._patch(event)
        for pod, text in _texts(event):
            for incident, words in SAYINGS:
                if words not in text or NEEDED.get(incident, "") not in text:
                    continue
                if (pod, incident) not in self._known:
                    self._known.add((pod, incident))
                    self._sightings.add(incident, event.revision, _quoted(text), pod)

    def _refusal(self, event: Event) -> None:
        """A request in an audit log that the API refused."""
        message = str(event.object.get("message"))
        if event.object.get("code") in REFUSED and LABEL in message:
            self._sightings.add(NEEDS_LABEL, event.revision, _quoted(message), event.key)

    def _patch(self, event: Event) -> None:
        report = core.event_object(event.object)
        if (report.subject.kind, report.reason) == ("ResourceSlicePatch", SELECTOR_FAILED):
            patch = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", report.subject.name)
            if (patch, PATCH_FAILS) not in self._known:
                self._known.add((patch, PATCH_FAILS))
                text = _quoted(report.text)
                self._sightings.add(PATCH_FAILS, event.revision, text, patch)


def _quoted(message: str) -> str:
    return pages.shortened(message, QUOTED_MAX)


def _texts(event: Event) -> Iterator[tuple[ObjectKey, str]]:
    place = event.key.group, event.key.resource
    if place == api_resources.PODS:
        condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
        if condition is not None and condition.status == "False":
            yield event.key, condition.message
    elif event.key.resource == api_resources.EVENTS[1]:
        report = core.event_object(event.object)
        if report.subject.kind == "Pod":
            key = ObjectKey(*api_resources.PODS, report.subject.namespace, report.subject.name)
            yield key, report.text

"""Events in the output of Kubernetes' end-to-end tests, which print those of a failed test.

    STEP: Collecting events from namespace "dra-1". @ 01/02/26 03:04:05.006
    I0102 03:04:05.000006  22 dump.go:53] At 2026-01-02 03:04:05 +0000 UTC - event for a: {kubelet
        n1} FailedPrepareDynamicResources: …

The second example is one line. It names neither the type of the Event nor the kind of its subject.
The kind follows from the component: a kubelet writes about its node and about pods, the scheduler
about pods. Of other components it is not known.
"""

import re

from app.adapters.history.formats.logged_events import LoggedEvent

NO_KIND = "the line of an event does not say what kind of object it is about"
NO_NAMESPACE = "no line before the event names its namespace"

_NAMESPACE = re.compile(r'Collecting events from namespace "(?P<name>[a-z0-9-]+)"\.')
_EVENT = re.compile(
    r"(?:^|[\s\]:])At (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? [+-]\d{4})(?: \w+)? "
    r"- event for (?P<name>[a-z0-9][a-z0-9.-]*): "
    r"\{(?P<component>[^\s{}]*) (?P<host>[^\s{}]*)\} (?P<reason>\w+): (?P<message>.*)"
)
_ZERO = "0001-01-01"
_KUBELET, _SCHEDULER = "kubelet", "default-scheduler"


class DumpedEvents:
    """The reader of the lines of one output, which remembers the namespace that was named last."""

    def __init__(self) -> None:
        self._namespace = ""

    def read(self, line: str) -> tuple[LoggedEvent | str, str] | None:
        """The Event of a line, or why it is lost, with its time as written; None for other lines.

        The time is empty when the Event has none.
        """
        if (named := _NAMESPACE.search(line)) is not None:
            self._namespace = named["name"]
            return None
        match = _EVENT.search(line)
        if match is None:
            return None
        stamp = "" if match["stamp"].startswith(_ZERO) else match["stamp"]
        return self._event(match) if self._namespace else NO_NAMESPACE, stamp

    def _event(self, match: re.Match[str]) -> LoggedEvent | str:
        component, name = match["component"], match["name"]
        if component not in (_KUBELET, _SCHEDULER):
            return NO_KIND
        is_node = component == _KUBELET and name == match["host"]
        return LoggedEvent(
            kind="Node" if is_node else "Pod",
            api_version="v1",
            namespace="" if is_node else self._namespace,
            name=name,
            uid="",
            field_path="",
            type="",
            reason=match["reason"],
            message=match["message"],
            component=component,
        )

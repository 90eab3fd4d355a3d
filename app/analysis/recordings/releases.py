"""The Kubernetes release of a recording, found in its content.

Components name their release in the user agents of their requests, control planes that run as pods
in the tags of their images, and kubelets in the status of their nodes. The component that decides
about devices has precedence. Kubelets may be older than the control plane, so they count after it,
and words of people last.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.domain.log import Event
from app.domain.log.records import Record
from app.domain.objects import profile as profiles
from app.domain.values import json_tree
from app.domain.values.fields import core

AGENTS_MAX = 1_000
"""The number of different user agents examined; one cluster has a few dozen."""

COMPONENTS = ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "kubelet")
"""The components that name the release, in order of precedence."""

CLUSTER = "Kubernetes"
"""The name of a cluster whose release people tell, after that of all components."""

AGENT, IMAGE, NODE = "user agents", "images of its pods", "status of nodes"

_AGENT = re.compile(rf"({'|'.join(COMPONENTS)})/v(\d+\.\d+\.\d+)")
_IMAGE = re.compile(rf"(?:.*/)?({'|'.join(COMPONENTS[:-1])}):v(\d+\.\d+\.\d+)")
_NODE = re.compile(r"v(\d+\.\d+\.\d+)")


@dataclass(slots=True)
class ComponentEvidence:
    """Evidence for the release of a component: the number of records, and the first one's place."""

    component: str
    release: str
    kind: str
    place: str
    count: int = 0

    def text(self) -> str:
        """The evidence for people. Example: kube-scheduler was v1.36.2 (user agents, 12 times,
        first a.log:3)
        """
        times = "once, at" if self.count == 1 else f"{self.count} times, first at"
        return f"{self.component} was v{self.release} ({self.kind}, {times} {self.place})"


@dataclass(slots=True)
class ReleaseEvidence:
    """Collects the evidence of records for the release of their cluster."""

    components: dict[tuple[str, str, str], ComponentEvidence] = field(default_factory=dict)
    _agents: dict[str, tuple[str, str] | None] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Examines one record."""
        if record.actor is not None and record.actor.agent:
            stated = self._stated_by(record.actor.agent)
            if stated is not None:
                self.note(*stated, AGENT, record.place)
        if record.group == "" and record.object is not None:
            if record.resource == "pods":
                for container in core.containers(record.object):
                    if match := _IMAGE.match(json_tree.text(container, "image")):
                        self.note(match[1], match[2], IMAGE, record.place)
            elif record.resource == "nodes":
                version = json_tree.text(record.object, "status", "nodeInfo", "kubeletVersion")
                if match := _NODE.match(version):
                    self.note("kubelet", match[1], NODE, record.place)

    def note(self, component: str, release: str, kind: str, place: str) -> None:
        """Count a statement that a component is of a release."""
        key = (component, release, kind)
        if key not in self.components:
            self.components[key] = ComponentEvidence(component, release, kind, place)
        self.components[key].count += 1

    def best(self) -> ComponentEvidence | None:
        """The most frequent evidence of the first component that has any; None without evidence."""
        for component in (*COMPONENTS, CLUSTER):
            stated = [
                evidence for evidence in self.components.values() if evidence.component == component
            ]
            if stated:
                return max(stated, key=lambda one: (one.count, _order(one.release)))
        return None

    def others(self, best: ComponentEvidence) -> Iterator[ComponentEvidence]:
        """The evidence for another release than `best`: an upgraded or mixed control plane.

        Kubelets up to that release are no contradiction.
        """
        for one in sorted(self.components.values(), key=_place):
            is_older_kubelet = one.component == "kubelet" and _order(one.release) <= _order(
                best.release
            )
            if one.release != best.release and not is_older_kubelet:
                yield one

    def _stated_by(self, agent: str) -> tuple[str, str] | None:
        if agent not in self._agents:
            if len(self._agents) >= AGENTS_MAX:
                return None
            match = _AGENT.match(agent)
            self._agents[agent] = None if match is None else (match[1], match[2])
        return self._agents[agent]


@dataclass(slots=True)
class ShownReleases:
    """The minor releases that controllers name in the user agents of their writes.

    A component of Kubernetes names its own release there, which its client library does for it. If
    one write has no such name, the releases of all are unknown: a control plane may be mixed.
    """

    _minors: set[int] = field(default_factory=set)
    _is_known: bool = True

    def note(self, event: Event) -> None:
        """Examines one write of a controller."""
        match = _AGENT.match(event.stamp.actor.agent)
        if match is None:
            self._is_known = False
        else:
            self._minors.add(int(match[2].split(".")[1]))

    @property
    def minors(self) -> frozenset[int]:
        """The minor releases; empty if any is unknown."""
        return frozenset(self._minors) if self._is_known else frozenset()


def notes(evidence: ReleaseEvidence, profile: str) -> list[str]:
    """The source of a history's profile, for its report."""
    best = evidence.best()
    if best is None:
        return [
            f"the recording does not name its release: the history imitates {profile}; "
            "--profile names another"
        ]
    lines = [f"the history imitates {profile}: {best.text()}"]
    if not profiles.profile_of(best.release):
        lines[0] += ", which no profile imitates; the nearest is used"
    lines += [f"against it: {other.text()}" for other in evidence.others(best)]
    return lines


def objections(evidence: ReleaseEvidence, profile: str) -> list[str]:
    """A note that the recording is of another release than the given one; mostly empty."""
    best = evidence.best()
    if best is None:
        return []
    known = {one.release for one in evidence.components.values() if one.component == best.component}
    if profile in {profiles.profile_of(release) for release in known}:
        return []
    like = profiles.profile_of(best.release)
    cure = f"--profile {like} imitates that one" if like else "no profile imitates it"
    return [f"the history imitates {profile}, but {best.text()}; {cure}"]


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _place(one: ComponentEvidence) -> tuple[int, tuple[int, ...], str]:
    names = (*COMPONENTS, CLUSTER)
    return names.index(one.component), _order(one.release), one.kind

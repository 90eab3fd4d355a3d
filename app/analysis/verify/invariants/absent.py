"""What a recording leaves out altogether, and the rules that rest on a write that is not there.

A policy may leave out a group of users, and a filter a verb. Nothing shows it but that such lines
are missing where they have to be. Parity: history-formats.md 4.5.
"""

from collections.abc import Iterable
from typing import NamedTuple

from app.analysis.verify.invariants.cluster import Cluster
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.doubts import LOST_OF_MIN
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

_KUBELET = "system:node:"
"""How the name of a kubelet's user begins: no server lets it write pods under another one."""

_SYSTEM = "system:"

_STAMPED = frozenset(("managedFields", "resourceVersion"))
"""The metadata that each write of a status changes."""


class Absence(NamedTuple):
    """Which write, if it was made and not recorded, would be enough for no rule to be broken.

    A write of a claim, or the end of a pod.
    """

    of_claim: bool = False
    of_pod: bool = False


class LeftOut:
    """Learns from imported lines which users wrote pods, and with which verbs objects changed."""

    def __init__(self) -> None:
        self._verbs: set[str] = set()
        self._has_users = self._has_kubelets = False
        self._played = PlayedKubelets()

    def follow(self, event: Event) -> None:
        """Notes the writer and the verb of a line."""
        self._verbs.add(event.stamp.verb)
        if not self._has_kubelets and event.key.resource == "pods":
            user = event.stamp.actor.user
            self._has_kubelets = user.startswith(_KUBELET)
            self._has_users |= user.startswith(_SYSTEM)
            if event.is_about_object:
                self._played.follow(event)

    @property
    def kubelets(self) -> bool:
        """Whether no kubelet wrote a pod, in a log that names the users of pods.

        Then no line shows that a pod ran, or that it finished: unless others did what kubelets do.
        """
        return self._has_users and not self._has_kubelets and not self._played.is_sure

    @property
    def updates(self) -> bool:
        """Whether no object was updated, in a log with other changes. Claims are allocated so."""
        return "update" not in self._verbs and self._verbs.issuperset(("create", "patch"))

    @property
    def patches(self) -> bool:
        """Whether no object was patched, in a log with other changes. Statuses are written so."""
        return "patch" not in self._verbs and self._verbs.issuperset(("create", "update"))


class PlayedKubelets:
    """Learns whether all that pods ran is written by users that are no kubelets, in plain sight.

    A simulator of nodes writes the statuses of pods under an account of its own. Where kubelets are
    left out, some line shows a phase that it did not write: beside what it wrote itself.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, JsonObject]] = {}
        self._written = 0
        self._has_unwritten = False

    def follow(self, event: Event) -> None:
        """Notes the phase of a pod, and whether the line changes nothing but the status."""
        if event.type is EventType.OBJECT_DELETED:
            # Its answer shows what others wrote before.
            was = self._known.pop(event.uid, None)
            if was is not None and was[0] != _phase(event.object):
                self._has_unwritten = True
            return
        phase, rest = _phase(event.object), _without_status(event.object)
        was = self._known.get(event.uid)
        self._known[event.uid] = phase, rest
        if was is None or was[0] == phase:
            return
        if was[1] == rest:
            self._written += 1
        else:
            self._has_unwritten = True

    @property
    def is_sure(self) -> bool:
        """Whether several lines wrote phases of pods, and every change of one was written so.

        One may be a write without effect, whose answer shows what an unrecorded line wrote.
        """
        return self._written >= LOST_OF_MIN and not self._has_unwritten


def _phase(pod: JsonObject) -> str:
    return json_tree.text(pod, "status", "phase")


def _without_status(pod: JsonObject) -> JsonObject:
    """The pod without its status, and without what writes of it change besides."""
    metadata = {
        name: value
        for name, value in json_tree.mapping(pod, "metadata").items()
        if name not in _STAMPED
    }
    return {
        **{name: value for name, value in pod.items() if name != "status"},
        "metadata": metadata,
    }


def absence(
    cluster: Cluster,
    objects: Iterable[ObjectKey],
    begin: Revision,
    end: Revision | None,
    *,
    together: Revision,
) -> Absence:
    """What may be absent, where a rule is broken from `begin` to `end`; None while it lasts.

    A write that shows the claim as it was proves that nothing of it is missing, and one that shows
    the pod, at `begin` or later, that it had not ended. So does the list at whose end the rule is
    broken: `together` is its first revision, else `begin`.
    """
    claims, pods = [], []
    for key in objects:
        if (claim := cluster.claims.get(key)) is not None:
            claims.append(claim)
        if (pod := cluster.pods.get(key)) is not None and pod.is_there:
            pods.append(pod)
    return Absence(
        of_claim=all(
            (claim.earlier if claim.written == end else claim.written) <= begin for claim in claims
        ),
        of_pod=any(pod.written < together for pod in pods),
    )

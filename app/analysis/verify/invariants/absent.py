"""What a recording leaves out altogether, and the rules that rest on a write that is not there.

A policy may leave out a group of users, and a filter a verb. Nothing shows it but that such lines
are missing where they have to be. Parity: history-formats.md 4.5.
"""

from collections.abc import Iterable
from typing import NamedTuple

from app.analysis.verify.invariants.cluster import Cluster
from app.domain.log import Event, ObjectKey, Revision

_KUBELET = "system:node:"
"""How the name of a kubelet's user begins: no server lets it write pods under another one."""

_SYSTEM = "system:"


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

    def follow(self, event: Event) -> None:
        """Notes the writer and the verb of a line."""
        self._verbs.add(event.stamp.verb)
        if not self._has_kubelets and event.key.resource == "pods":
            user = event.stamp.actor.user
            self._has_kubelets = user.startswith(_KUBELET)
            self._has_users |= user.startswith(_SYSTEM)

    @property
    def kubelets(self) -> bool:
        """Whether no kubelet wrote a pod, in a log that names the users of pods.

        Then no line shows that a pod ran, or that it finished.
        """
        return self._has_users and not self._has_kubelets

    @property
    def updates(self) -> bool:
        """Whether no object was updated, in a log with other changes. Claims are allocated so."""
        return "update" not in self._verbs and self._verbs.issuperset(("create", "patch"))

    @property
    def patches(self) -> bool:
        """Whether no object was patched, in a log with other changes. Statuses are written so."""
        return "patch" not in self._verbs and self._verbs.issuperset(("create", "update"))


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

"""WRONG: a field that follows from another one of its object, altered in all lines alike.

No line contradicts another one, so only a judge that knows what a server keeps together notices.
"""

from tests.adversary.catalogue import FAILS, QUICKSTART, TAINTS, VERSIONS, alteration
from tests.adversary.log import Json, Log, uid_of


def _phase(log: Log, phase: str, *, is_deleted: bool) -> None:
    """Sets the phase of the namespace that is deleted, while or until it is."""
    ended = log.lines[log.first("delete", "namespaces", code=200)]

    def change(body: Json) -> None:
        if body.get("status") and ("deletionTimestamp" in body["metadata"]) is is_deleted:
            body["status"]["phase"] = phase

    log.alter(uid_of(ended), change)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def namespace_stays_active_in_its_deletion(log: Log) -> None:
    """A namespace that is being deleted has the phase Active (controllers.md 5.5)."""
    _phase(log, "Active", is_deleted=True)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def namespace_terminates_before_its_deletion(log: Log) -> None:
    """A namespace has the phase Terminating while nobody deletes it (controllers.md 5.5)."""
    _phase(log, "Terminating", is_deleted=False)


@alteration("wrong", (TAINTS, QUICKSTART), verify=FAILS, decide=FAILS)
def namespace_with_the_label_of_another_one(log: Log) -> None:
    """A namespace has another name in the label in which a server writes its own (api.md 5)."""
    made = log.lines[log.first("create", "namespaces", code=201)]

    def change(body: Json) -> None:
        body["metadata"]["labels"]["kubernetes.io/metadata.name"] = "another"

    log.alter(uid_of(made), change)


@alteration("wrong", (TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def slice_made_with_a_later_generation(log: Log) -> None:
    """A new slice has a generation that only changes of its spec give (objects.md 2)."""
    made = log.lines[log.first("create", "resourceslices", code=201)]

    def change(body: Json) -> None:
        body["metadata"]["generation"] += 5

    log.alter(uid_of(made), change)

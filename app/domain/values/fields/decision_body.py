"""The fields of recorded decisions, in the bodies of DecisionRecorded events."""

from app.domain.values.fields import paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import NO_UID, Uid


class DecisionInputs(FieldRecord, frozen=True):
    """The inputs of a decision other than the views; each controller sets the fields it needs."""

    now: int = 0
    uid: Uid = NO_UID
    reason: str = ""
    problem: str = ""
    attempt: int = 0
    start: int = 0
    batch: int = 0
    next: int | None = None
    due: int = 0
    bind_at: int = 0
    binding_node: str = ""
    acts: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    paced: bool = False


class PreemptionSummary(FieldRecord, frozen=True):
    """The preemption of pods in favour of another pod."""

    node: str = ""
    victims: tuple[str, ...] = ()
    victims_count: int = 0
    candidates: int = 0
    violations: int = 0


class CauseCount(FieldRecord, frozen=True):
    """One cause for which devices were not available, with counts."""

    claim: str = ""
    request: str = ""
    cause: str = ""
    about: str = ""
    devices: int = 0
    nodes: int = 0
    examples: tuple[str, ...] = ()


class PoolProblem(FieldRecord, frozen=True):
    """A problem for which pools cannot be used, with the number of times that a node met it."""

    problem: str = ""
    count: int = 0


class DecisionSummary(FieldRecord, frozen=True):
    """The summary of a decision.

    `causes` were counted on `causes_nodes` nodes; on `together` of them each request alone could be
    satisfied.
    """

    message: str = ""
    node: str = ""
    feasible: int | None = None
    looked_at: int = 0
    preemption: PreemptionSummary = PreemptionSummary()
    causes: tuple[CauseCount, ...] = ()
    causes_nodes: int = 0
    causes_cut: int = 0
    causes_devices_cut: int = 0
    causes_nodes_cut: int = 0
    together: int = 0
    pools: tuple[PoolProblem, ...] = ()


class DecisionBody(FieldRecord, frozen=True):
    """A recorded decision. `cause` is the revision that caused it, `key` its key in the queue."""

    controller: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    key: str = ""
    outcome: str = ""
    cause: int = 0
    commands: int = 0
    inputs: DecisionInputs = DecisionInputs()

    @property
    def place(self) -> tuple[str, str]:
        """The namespace and name of the object that the decision is about."""
        return (self.namespace, self.name)


inputs = paths.mapping("inputs")
"""The inputs as stored, with those of repeated attempts, which `DecisionInputs` does not read."""

read = records.of_tree(DecisionBody)
summary = records.of_tree(DecisionSummary)
summary_of = records.of_value(DecisionSummary, paths.get("summary"))

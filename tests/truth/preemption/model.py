"""Which pods go for another one, counted from raw objects.

It has the order of upstream's choices and nothing else of it: whether a pod fits is asked of the
model of waiting pods, on a cluster without the pods that would go. Their claims stay, so no device
gets free. Parity: controllers.md 3.5, 4.2 and 4.3.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.truth.facts import FINISHED, Facts, amount
from tests.truth.raw import Key, State
from tests.truth.waiting.model import Model, Verdict

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NEVER = "preemption: not eligible due to preemptionPolicy=Never."
AWAITS = "preemption: not eligible due to a terminating pod on the nominated node."
EVICTED = ("DisruptionTarget", "True", "PreemptionByScheduler")

_ERROR = "an error of the allocator"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node with the pods that would go, the most important first."""

    node: str
    victims: tuple[str, ...]
    violations: int
    cost: tuple[int, int, int, int, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt for a pod gives.

    `nodes` are those that it may get, `refusals` the numbers of nodes by reason. `text` is what is
    said of pre-emption; of the `best` candidates any may be chosen. `is_known` is false where an
    error of the allocator decides.
    """

    nodes: tuple[str, ...] = ()
    refusals: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    candidates: tuple[Candidate, ...] = ()
    is_known: bool = True

    @property
    def best(self) -> list[Candidate]:
        """The candidates with the lowest cost."""
        least = min((one.cost for one in self.candidates), default=None)
        return [one for one in self.candidates if one.cost == least]


def plain(state: State) -> State:
    """The objects with each pod naming the claims that were made for it from templates."""
    return {key: _named(tree) if key[0] == "pods" else tree for key, tree in state.items()}


def _named(pod: dict) -> dict:
    entries = pod["spec"].get("resourceClaims") or ()
    if not any("resourceClaimTemplateName" in one for one in entries):
        return pod
    status = pod.get("status") or {}
    made = {
        one["name"]: one.get("resourceClaimName", "")
        for one in status.get("resourceClaimStatuses") or ()
    }
    named = [{"resourceClaimName": made.get(one["name"], ""), **one} for one in entries]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": named}}


def priority(pod: dict) -> int:
    """The priority that admission gave it."""
    return int(pod["spec"].get("priority") or 0)


def is_evicted(pod: dict) -> bool:
    """Whether it ends because it was evicted for another pod."""
    return "deletionTimestamp" in pod["metadata"] and any(
        (one["type"], one["status"], one.get("reason")) == EVICTED
        for one in (pod.get("status") or {}).get("conditions") or ()
    )


class Preempting:
    """One attempt for a pod in the state of one moment."""

    def __init__(self, state: State, pod: str, now: datetime) -> None:
        self.state = plain(state)
        self.name = pod
        self.pod = self.state[_key(pod)]
        self.priority = priority(self.pod)
        self.now = now
        self.nodes = sorted(name for kind, _, name in self.state if kind == "nodes")
        self.nominated = (self.pod.get("status") or {}).get("nominatedNodeName") or ""

    def outcome(self) -> Outcome:
        """What the attempt gives."""
        count = len(self.nodes)
        model = Model(Facts(self.state), self.name)
        if model.unasked:
            text = NEVER if self._never else _in_vain(count, Counter({NOT_HELPFUL: count}))
            return Outcome(text=text)
        verdicts = {node: self.verdict(node) for node in self.nodes}
        if any(one.error for one in verdicts.values()):
            return Outcome(is_known=False)
        fitting = tuple(node for node, one in verdicts.items() if not one.text)
        if self.nominated in fitting:
            fitting = (self.nominated,)
        if fitting:
            return Outcome(nodes=fitting)
        refusals = Counter(part for one in verdicts.values() for part in one.text.split(", "))
        candidates: list[Candidate] = []
        text = NEVER
        if not self._never:
            text, candidates = self._evictions(verdicts)
        return Outcome((), refusals, text, tuple(candidates), text != _ERROR)

    @property
    def _never(self) -> bool:
        return bool(self.pod["spec"].get("preemptionPolicy") == "Never")

    def verdict(self, node: str, without: Sequence[str] = ()) -> Verdict:
        """The answer of a node beside the pods that it is kept for, without some of its pods."""
        state = {key: tree for key, tree in self.state.items() if _place(key) not in without}
        rivals = {
            key: {**tree, "spec": {**tree["spec"], "nodeName": node}}
            for key, tree in state.items()
            if self._is_rival(key, tree, node)
        }
        if rivals:
            crowded = Model(Facts({**state, **rivals}), self.name).verdict(node)
            if crowded.text and crowded.plugin != "DynamicResources":
                return crowded
        return Model(Facts(state), self.name).verdict(node)

    def _is_rival(self, key: Key, tree: dict, node: str) -> bool:
        return (
            key[0] == "pods"
            and _place(key) != self.name
            and (tree.get("status") or {}).get("nominatedNodeName") == node
            and not tree["spec"].get("nodeName")
            and priority(tree) >= self.priority
        )

    def _evictions(self, verdicts: Mapping[str, Verdict]) -> tuple[str, list[Candidate]]:
        hopeful = [node for node, one in verdicts.items() if self._may_help(node, one)]
        if self.nominated in hopeful:
            there = self._weaker(self.nominated)
            if any(is_evicted(self.state[_key(name)]) for name in there):
                return AWAITS, []
        reasons: Counter = Counter({NOT_HELPFUL: len(verdicts) - len(hopeful)})
        candidates = []
        for node in hopeful:
            match self._candidate(node):
                case Candidate() as one:
                    candidates.append(one)
                case Verdict(error=True):
                    return _ERROR, []
                case verdict:
                    reasons.update(verdict.text.split(", "))
        if not candidates:
            return _in_vain(len(verdicts), reasons), []
        return "", candidates

    def _may_help(self, node: str, verdict: Verdict) -> bool:
        if verdict.plugin == "InterPodAffinity":
            return "anti-affinity" in verdict.text
        if verdict.plugin != "NodeResourcesFit":
            return False
        wanted = sum(
            amount(((one.get("resources") or {}).get("requests") or {}).get("cpu", "0"))
            for one in self.pod["spec"]["containers"]
        )
        room = amount(self.state["nodes", "", node]["status"]["allocatable"]["cpu"])
        return "Insufficient cpu" not in verdict.text or wanted <= room

    def _weaker(self, node: str) -> list[str]:
        """The pods of a node that may go, the most important first."""
        there = [
            (key, tree)
            for key, tree in self.state.items()
            if key[0] == "pods"
            and tree["spec"].get("nodeName") == node
            and (tree.get("status") or {}).get("phase") not in FINISHED
            and priority(tree) < self.priority
        ]
        there.sort(
            key=lambda one: (
                -priority(one[1]),
                self._started(one[1]),
                one[1]["metadata"]["creationTimestamp"],
                one[0],
            )
        )
        return [_place(key) for key, _ in there]

    def _started(self, pod: dict) -> float:
        text = (pod.get("status") or {}).get("startTime")
        return (datetime.fromisoformat(text) if text else self.now).timestamp()

    def _candidate(self, node: str) -> Candidate | Verdict:
        weaker = self._weaker(node)
        gone = set(weaker)
        nobody = Verdict(NO_VICTIMS)
        if not weaker:
            return nobody
        verdict = self.verdict(node, [*gone])
        if verdict.text:
            return verdict
        guarded = self._guarded(weaker)
        for name in (*guarded, *(one for one in weaker if one not in guarded)):
            if not self.verdict(node, [*(gone - {name})]).text:
                gone.remove(name)
        victims = tuple(name for name in weaker if name in gone)
        if not victims:
            return nobody
        trees = [self.state[_key(name)] for name in victims]
        highest = priority(trees[0])
        violations = sum(name in gone for name in guarded)
        cost = (
            violations,
            highest,
            sum(priority(one) + 2**31 for one in trees),
            len(trees),
            -min(self._started(one) for one in trees if priority(one) == highest),
        )
        return Candidate(node, victims, violations, cost)

    def _guarded(self, pods: Sequence[str]) -> list[str]:
        """Those whose eviction is one too many for a budget."""
        used: Counter = Counter()
        guarded = []
        for name in pods:
            labels = self.state[_key(name)]["metadata"].get("labels") or {}
            is_guarded = False
            for key, budget in self._budgets():
                wanted = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
                status = budget.get("status") or {}
                is_about = bool(wanted) and wanted.items() <= labels.items()
                if is_about and _key(name)[2] not in (status.get("disruptedPods") or {}):
                    used[key] += 1
                    is_guarded |= used[key] > int(status.get("disruptionsAllowed") or 0)
            if is_guarded:
                guarded.append(name)
        return guarded

    def _budgets(self) -> Iterator[tuple[Key, dict]]:
        return ((key, tree) for key, tree in self.state.items() if key[0] == "poddisruptionbudgets")


def _place(key: Key) -> str:
    return f"{key[1]}/{key[2]}" if key[0] == "pods" else ""


def _key(name: str) -> Key:
    namespace, _, own = name.partition("/")
    return "pods", namespace, own


def _in_vain(count: int, reasons: Counter) -> str:
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f"preemption: 0/{count} nodes are available: {', '.join(parts)}."

"""Shapes of `/redra/v1`; its OpenAPI document is made of these."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.domain.objects.write.intake import SEED_MAX


class Model(BaseModel):
    """Unknown fields are refused, so that a typing mistake is reported."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Index(Model):
    """The paths that are served."""

    paths: list[str]


class NewHistory(Model):
    """Body of `POST /redra/v1/histories`."""

    name: str = Field(description="DNS labels, joined by dots")
    seed: int = Field(0, ge=0, le=SEED_MAX, description="Seed of uids that replays derive")
    profile: str = Field("", description="Kubernetes release to imitate; empty: the newest")
    gates: dict[str, bool] = Field(
        default_factory=dict, description="Feature gates that differ from the release"
    )


class NewName(Model):
    """Body of `POST /redra/v1/histories/{history}/rename`."""

    name: str = Field(description="DNS labels, joined by dots")


class NewCopy(Model):
    """Body of `POST /redra/v1/histories/{history}/copy`."""

    name: str = Field(description="DNS labels, joined by dots")
    at: str = Field("", description="Copy up to this revision or instant; empty: all of it")


class NewFork(Model):
    """Body of `POST /redra/v1/histories/{history}/fork`."""

    name: str = Field(description="DNS labels, joined by dots")
    at: str = Field("", description="Continue after this revision or instant; empty: the end")
    profile: str = Field("", description="Kubernetes release of the fork; empty: the same")
    gates: dict[str, bool] = Field(default_factory=dict, description="Feature gates to switch")
    quirks: dict[str, bool] = Field(default_factory=dict, description="Quirks to switch")
    delete: list[str] = Field(default_factory=list, description="Objects to delete, as KIND/NAME")
    patch: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Patches by object, KIND/NAME or KIND/NAMESPACE/NAME"
    )
    apply: list[dict[str, Any]] = Field(default_factory=list, description="Objects to apply")
    inputs: Literal["none", "recorded"] = Field(
        "none",
        description="recorded: the later writes of users, drivers and kubelets are applied under "
        "virtual time",
    )
    until: str = Field(
        "", description="Last revision or instant of the recorded inputs; empty: all"
    )


class DeletedHistory(Model):
    """The tombstone of a deleted history."""

    name: str
    revision: int = Field(description="Revision of the last event")
    time: str = Field(description="Time of the last event; empty for an empty history")
    hash: str = Field(description="Hash of the last event")
    created: str
    deleted: str
    deleted_by: str = Field(description="User, or command")


class DeletedHistoryList(Model):
    """Deleted histories, in the order of deletion."""

    items: list[DeletedHistory]


class History(Model):
    """One history."""

    name: str
    revision: int = Field(description="Revision of the last event")
    time: str = Field(description="Time of the last event; empty for an empty history")
    hash: str = Field(description="Hash of the last event; all events before it are covered")
    created: str
    profile: str
    gates: dict[str, bool]
    parent: int | None = Field(description="Number of the history this was copied or forked from")
    parent_revision: int
    is_fork: bool = Field(False, description="True if it begins with the events of its parent")
    is_recorded: bool = Field(False, description="True if it is a recording of another cluster")
    moments_end: str = Field(
        "", description="The instant from which relative moments such as 10m count back"
    )
    moments_end_now: bool = Field(
        False, description="True if that is now; false if it is the time of the last event"
    )
    opening: str = Field(
        "", description="How far it is being opened; empty if it is not being opened"
    )
    broken: str = Field("", description="Why it cannot be opened; empty if no problem is known")
    replaced: str = Field(
        "",
        description="The difference that this server noticed when the log was replaced by a "
        "restore or a failover; empty if that never happened",
    )


class ForkedHistory(History):
    """A history that was forked."""

    notes: list[str] = Field(
        default_factory=list, description="What its settings make of the objects that are applied"
    )
    report: dict[str, Any] | None = Field(
        None,
        description="The outcome of recorded inputs, and the decisions that differ from the "
        "parent's",
    )
    text: list[str] = Field(default_factory=list, description="The report as lines for people")


class HistoryList(Model):
    """All histories, sorted by name."""

    items: list[History]


class Column(Model):
    """One column of a view."""

    name: str
    type: str
    description: str


class View(Model):
    """A view that can be read."""

    name: str
    projection: str
    description: str
    key: list[str]
    columns: list[Column]


class Controller(Model):
    """One controller of a history."""

    name: str
    state: str = Field(description="on, off, off (settings), off (release) or recorded")
    run_by: str = Field(
        description="The process that runs it now, by its host and a random identifier; "
        "empty for none"
    )


class ControllerList(Model):
    """All controllers. The annotation `redra.dev/controllers-off` of the namespace `kube-system`
    switches them, by the Kubernetes API of the history.
    """

    items: list[Controller]


class ViewList(Model):
    """All views."""

    items: list[View]


class Rows(Model):
    """The rows of a view at one revision, sorted by key."""

    view: str
    revision: int
    items: list[dict[str, Any]]
    left_out: int = Field(0, description="Rows beyond the limit")


class Decision(Model):
    """A controller's decision as recorded."""

    revision: int
    time: str
    controller: str
    resource: str
    namespace: str
    name: str
    outcome: str
    observed: int
    inputs: dict[str, Any]
    summary: dict[str, Any]


class DecisionList(Model):
    """Decisions in the order of the log. `next` is the beginning of the next page; 0 at the end."""

    items: list[Decision]
    next: int


class Reason(Model):
    """One reason and what it consists of."""

    model_config = ConfigDict(extra="allow", frozen=True)

    text: str


class Why(Model):
    """The decision about an object, and its reasons as a tree of texts."""

    model_config = ConfigDict(extra="allow", frozen=True)

    subject: str = Field(
        description="Kind in the singular and in lower case, as in `-o name`, and name"
    )
    outcome: str
    revision: int
    text: str
    reasons: Reason
    decision: dict[str, Any] | None
    certainty: str = Field(description="sure, or unsure if the recording lacks content")
    doubts: list[dict[str, Any]] = Field(description="Losses of the recording, by kind")


class SignedHistoryHead(Model):
    """The head of a history, signed with the key of the server's data folder."""

    history: str
    revision: int
    hash: str = Field(description="`sha256:` and 64 hex digits")
    time: str
    key: str = Field(description="`ed25519:` and the public key in base64")
    signature: str
    kind: str
    format: int


class Proposal(Model):
    """Body of `POST …/blast`: objects to create or replace, `KIND/NAME` texts to delete, nodes to
    cordon or to drain.
    """

    objects: list[dict[str, Any]] = Field(default_factory=list)
    places: list[str] = Field(
        default_factory=list,
        description="The place at which each object was read, for messages about it",
    )
    delete: list[str] = Field(default_factory=list)
    cordon: list[str] = Field(default_factory=list)
    drain: list[str] = Field(default_factory=list)


class Wanted(Model):
    """Body of `POST …/fit`: claims, templates or pods, and the objects that they name."""

    objects: list[dict[str, Any]] = Field(default_factory=list)


class Blast(Model):
    """The effects of a change. Counts in `totals` are exact; `left_out` counts omitted list
    entries."""

    revision: int
    time: str
    effects: list[dict[str, Any]] = Field(description="The outcome of each proposed object")
    preview: bool = Field(description="True if a rule with effect None was judged as NoExecute")
    notes: list[str]
    totals: dict[str, int]
    pods: list[dict[str, Any]] = Field(description="Pods with their outcome, instant and reasons")
    claims: list[dict[str, Any]] = Field(description="Allocated claims with their problems")
    namespaces: list[dict[str, Any]]
    owners: list[dict[str, Any]]
    devices: list[dict[str, Any]]
    pools: list[dict[str, Any]] = Field(description="State, counts, capacity and counters")
    classes: list[dict[str, Any]]
    left_out: dict[str, int]
    waiting: list[dict[str, Any]] = Field(description="Waiting pods that it affects")
    claim_deletions: list[dict[str, Any]] = Field(description="The outcome of deleted claims")
    quotas: list[dict[str, Any]] = Field(
        description="Limits of quotas before and after, and their use"
    )
    writes: list[dict[str, Any]] = Field(description="Future writes that it would refuse or accept")
    certainty: str = Field(description="sure, or unsure if the recording lacks content")
    doubts: list[dict[str, Any]] = Field(description="Losses of the recording, by kind")


class RuntimeHealth(Model):
    """The state of one history in this process."""

    history: str
    revision: int
    waiting_writes: int
    followers: int
    problem: str


class WorkerList(Model):
    """The histories that run in this process."""

    items: list[RuntimeHealth]


class SightingList(Model):
    """The known defects and traps that occur in a history."""

    items: list[dict[str, Any]] = Field(
        description="Incident, certainty, first revision, times, objects, message; of the incident "
        "its title, kind (defect or trap), number, the release that fixed it, and the repair"
    )
    attempts_left_out: int = Field(
        default=0,
        description="Number of scheduler attempts beyond the bound, which were not made again",
    )


class Diff(Model):
    """The different decisions of two histories, or their differences at the end."""

    model_config = ConfigDict(extra="allow", frozen=True)

    a: dict[str, Any] = Field(description="History, revision and time of the first side")
    b: dict[str, Any] = Field(description="The same of the second side")
    common: int = Field(
        description="The last revision up to which both histories are equal; 0: none"
    )
    outcome: str = Field(description="same or different")
    differences: list[dict[str, Any]] = Field(
        description="Subjects with their class, both sides, the first difference, causes and chain"
    )


class Rehearsal(Model):
    """The changes of a history under another release."""

    model_config = ConfigDict(extra="allow", frozen=True)

    outcome: str = Field(description="Whether nothing changes, only texts, or more")
    refused: list[dict[str, Any]] = Field(description="Recorded writes that its API refuses")
    versions: list[dict[str, Any]] = Field(
        description="API versions that are removed or newly deprecated"
    )
    decisions: dict[str, Any] = Field(
        description="A comparison of the history (A) with its rehearsal (B)"
    )
    texts: list[dict[str, Any]] = Field(description="Texts of conditions and Events that change")
    compared: dict[str, int] = Field(description="Decisions that come out as recorded")
    unsure: dict[str, Any] = Field(description="Doubts because of the recording")

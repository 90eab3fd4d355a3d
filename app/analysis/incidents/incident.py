"""An incident: its description, the steps that cause it, and the facts to be observed.

Each has two variants. Under `broken` the facts of `finding` hold; under `repaired`, with other
switches of the cluster or other steps, those of `instead`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject

_T = TypeVar("_T")

NOT_FIXED = ("", "not repaired", "not released")
"""The texts of `fixed` that name no release."""

REPEAT_MAX = 1_000
PLACEHOLDER = "{n}"


class IncidentVariant(StrEnum):
    """The variant with the defect or pitfall, or the one without."""

    BROKEN = "broken"
    REPAIRED = "repaired"


class IncidentStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step: exactly one of `apply`, `delete`, `patch`, `status`, `wait`.

    `apply` are manifests; with `repeat` they are applied that many times, with the number in place
    of `{n}`. `delete` names an object as `kind/name`; with `now` it is deleted immediately. `patch`
    and `status` give a merge patch of the object `of`. `wait` is a number of seconds. With `only`
    the step belongs to one variant.
    """

    apply: list[JsonObject] | None = None
    repeat: int = 1
    delete: str = ""
    now: bool = False
    patch: JsonObject | None = None
    status: JsonObject | None = None
    of: str = ""
    wait: float = 0
    only: IncidentVariant | None = None

    def trees(self) -> Iterator[JsonObject]:
        """The manifests, each as many times as it is applied."""
        for number in range(1, self.repeat + 1):
            for tree in self.apply or ():
                yield tree if self.repeat == 1 else _numbered(tree, number)


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An observation at the end: about one `pod`, `claim` or `rule`, or about the whole history.

    `node` is where a pod is bound (empty: nowhere), `evicted` whether it was deleted for a taint,
    `gone` whether the object no longer exists, `devices` what its claims hold as `pool/device`,
    `reserved` the number of consumers of a claim, `says` a part of a message about the object.
    `refused` is a part of a refusal of the API, `violated` a rule of the invariants that is
    violated.
    """

    pod: str = ""
    claim: str = ""
    rule: str = ""
    node: str | None = None
    evicted: bool | None = None
    gone: bool | None = None
    devices: list[str] | None = None
    reserved: int | None = None
    says: str | None = None
    refused: str | None = None
    violated: str | None = None

    @property
    def text(self) -> str:
        """The fact as text for people."""
        subject = (
            f"pod {self.pod}"
            if self.pod
            else (f"claim {self.claim}" if self.claim else f"rule {self.rule}" if self.rule else "")
        )
        claims = {
            "node": "is bound to no node" if self.node == "" else f"is bound to {self.node}",
            "evicted": "is evicted" if self.evicted else "is not evicted",
            "gone": "is gone" if self.gone else "is there",
            "devices": f"holds {', '.join(self.devices or ()) or 'no device'}",
            "reserved": f"has {self.reserved} consumers",
            "says": f"has the message {self.says!r}",
            "refused": f"the API refuses: {self.refused!r}",
            "violated": f"the history violates {self.violated}",
        }
        texts = [text for name, text in claims.items() if getattr(self, name) is not None]
        return f"{subject} {' and '.join(texts)}".strip()


class IncidentCluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster in which the steps are executed, like the settings of a history."""

    profile: str = "1.37"
    gates: dict[str, bool] = {}
    quirks: dict[str, bool] = {}
    off: list[str] = []

    def settings(self) -> JsonObject:
        """The settings for a history."""
        return {
            "profile": self.profile,
            "gates": dict(self.gates),
            "quirks": dict(self.quirks),
            "controllers": {"off": list(self.off)},
        }


class Incident(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known defect (of upstream) or pitfall (works as designed, but unexpectedly).

    `number` is its number on the page of behaviours, `upstream` where it is documented, `fixed` the
    release that fixed it, `repair` what a user can do about it.
    """

    title: str
    kind: str
    number: str = ""
    upstream: str = ""
    fixed: str = ""
    repair: str = ""
    cluster: IncidentCluster = IncidentCluster()
    repaired: IncidentCluster | None = None
    steps: list[IncidentStep] = []
    finding: list[Fact] = []
    instead: list[Fact] = []

    def about(self) -> JsonObject:
        """The incident in short, as JSON: title, number, the release that fixed it, the repair."""
        names = ("title", "kind", "number", "fixed", "repair")
        return {name: getattr(self, name) for name in names}

    @property
    def release(self) -> str:
        """The behaviour of the releases, as text for people."""
        if self.fixed in NOT_FIXED:
            return "no release repairs it"
        return f"repaired in {self.fixed}"

    def cluster_of(self, variant: IncidentVariant) -> IncidentCluster:
        """The cluster of a variant."""
        if variant is IncidentVariant.REPAIRED and self.repaired is not None:
            return self.repaired
        return self.cluster

    def steps_of(self, variant: IncidentVariant) -> Sequence[IncidentStep]:
        """The steps of a variant."""
        return [step for step in self.steps if step.only in (None, variant)]

    def facts_of(self, variant: IncidentVariant) -> Sequence[Fact]:
        """The facts to be observed in a variant."""
        return self.finding if variant is IncidentVariant.BROKEN else self.instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """An incident with its name and story."""

    name: str
    incident: Incident
    story: str

    def about(self) -> JsonObject:
        """The incident in short, as JSON, with its name and where it is documented."""
        incident = self.incident
        return {
            "name": self.name,
            "kind": incident.kind,
            "number": incident.number,
            "title": incident.title,
            "upstream": incident.upstream,
            "fixed": incident.fixed,
            "repair": incident.repair,
        }

    def facts(self) -> tuple[list[str], list[str]]:
        """The facts with the defect or trap, and those without it, as texts."""
        broken, repaired = (
            [fact.text for fact in self.incident.facts_of(variant)] for variant in IncidentVariant
        )
        return broken, repaired


def parse(tree: object, place: str) -> Incident:
    """Reads the incident of a document. Raises InputError."""
    incident = _converted(tree, Incident, place)
    for number, step in enumerate(incident.steps):
        _check_step(step, f"{place}: steps[{number}]")
    if not incident.finding or not incident.instead:
        raise InputError("what is to be seen is missing: finding, instead", place=place)
    return incident


def _converted(tree: object, form: type[_T], place: str) -> _T:
    try:
        return msgspec.convert(tree, form)
    except msgspec.ValidationError as problem:
        raise InputError(str(problem), place=place) from problem


def _check_step(step: IncidentStep, place: str) -> None:
    acts = [
        step.apply is not None,
        bool(step.delete),
        step.patch is not None,
        step.status is not None,
        step.wait > 0,
    ]
    if sum(acts) != 1:
        raise InputError("a step is one of apply, delete, patch, status, wait", place=place)
    if not 1 <= step.repeat <= REPEAT_MAX:
        raise InputError(f"repeat is from 1 to {REPEAT_MAX}", place=place)


def _numbered(tree: Any, number: int) -> Any:
    if isinstance(tree, dict):
        return {name: _numbered(value, number) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_numbered(value, number) for value in tree]
    return tree.replace(PLACEHOLDER, str(number)) if isinstance(tree, str) else tree

"""What readers share: options, notes, and a record made from a recorded object."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.adapters.history import kinds, times
from app.adapters.history.limits import DEFAULT_LIMITS, ImportLimits
from app.domain.errors import InputError
from app.domain.log.records import (
    Contradiction,
    Loss,
    Op,
    Quality,
    Record,
    TimeQuality,
    comparable_version,
)
from app.domain.objects.rules import Rules
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

PLACES_MAX = 3
"""Places that are named with a sentence that holds for many."""

CONTRADICTIONS_MAX = 20
"""Contradictions between sources that are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read.

    `format` overrides detection (`auto` detects). `at` is the moment of dumps, `now` what a server
    would write as the present into manifests (times of taints), `unwrap` the path
    of the field that holds the audit event in a cloud export. `one_counter` says that resource
    versions of different types come from one counter, as in an ordinary cluster; without it types
    are merged by time. `audit_list_baseline` takes lists in an audit log as baseline.
    `with_secrets` keeps Secrets and the data of ConfigMaps, which are left out otherwise.
    `keep_going` passes over what cannot be read and lists it; without it a refusal says the
    `way_on`, if there is one. With `rules`, manifests are admitted
    as a server of that release would (unknown fields, defaults, validation), dumps are looked
    through for fields that the release does not know, and patches can be applied.
    """

    format: str = "auto"
    at: Instant | None = None
    now: Instant = Instant(0)
    unwrap: str = ""
    one_counter: bool = True
    audit_list_baseline: bool = True
    with_secrets: bool = False
    keep_managed_fields: bool = False
    keep_going: bool = False
    way_on: str = ""
    rules: Rules | None = None
    limits: ImportLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """Something that was passed over because of `keep_going`, and why."""

    place: str
    problem: str


@dataclass(slots=True, kw_only=True)
class Notes:
    """What reading showed that the report should say: guesses, things left out, refusals.

    Of the refusals and of what is left out `refusals_max` are kept, all are counted. Of the
    contradictions between sources `CONTRADICTIONS_MAX` are kept; each is a loss of its record
    besides.
    """

    keep_going: bool = False
    way_on: str = ""
    refusals_max: int = DEFAULT_LIMITS.refusals_max
    texts: list[str] = field(default_factory=list)
    alike: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    refusals: list[SkippedRecord] = field(default_factory=list)
    refused: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)
    left_out: dict[tuple[str, str], int] = field(default_factory=dict)
    left_out_files: int = 0

    @contextmanager
    def reading(self, *, is_named: bool) -> Iterator[None]:
        """Meanwhile, what is refused of a source that nobody named by itself is a loss.

        A folder or an archive is taken apart: one document that no server takes says nothing
        against the others.
        """
        keep_going = self.keep_going
        self.keep_going = keep_going or not is_named
        try:
            yield
        finally:
            self.keep_going = keep_going

    def contradict(self, contradiction: Contradiction) -> None:
        """Keep a contradiction and its sentence, once."""
        kept = self.contradictions
        if len(kept) < CONTRADICTIONS_MAX and contradiction not in kept:
            kept.append(contradiction)
            self.add(str(contradiction))

    def add(self, text: str) -> None:
        """A sentence, once."""
        if text not in self.texts:
            self.texts.append(text)

    def add_alike(self, text: str, place: str) -> None:
        """A sentence that may hold for many places; it is told once, with the first of them."""
        self.alike.setdefault(text, []).append(place)

    def sentences(self) -> Iterator[str]:
        """All sentences, then the counts of what is left out."""
        yield from self.texts
        for text, places in self.alike.items():
            more = len(places) - PLACES_MAX
            shown = ", ".join(places[:PLACES_MAX])
            yield f"{text}: {shown}" + (f" and {more} more" if more > 0 else "")
        yield from (f"{name}: {count}" for name, count in sorted(self.counts.items()))

    def count(self, name: str, amount: int = 1) -> None:
        """Count something that is left out."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def pass_over(self, place: str, reason: str, amount: int = 1) -> None:
        """Note something that is not of a cluster's state: a text, an answer that is no object.

        Nothing of the recording is missing for it. The same reason in one place counts up.
        """
        key = (place, reason)
        if key in self.left_out:
            self.left_out[key] += amount
        else:
            self.left_out_files += 1
            if len(self.left_out) < self.refusals_max:
                self.left_out[key] = amount

    def refuse(self, problem: InputError) -> None:
        """Raise the problem, or note it when reading goes on in spite of it."""
        if self.keep_going:
            self.lose(problem)
            return
        if not self.way_on or self.way_on in problem.cure:
            raise problem
        cure = ", ".join(text for text in (problem.cure, self.way_on) if text)
        raise type(problem)(problem.problem, place=problem.place, cure=cure) from problem

    def lose(self, problem: InputError) -> None:
        """Note something that a cluster has and that cannot be read, beside what can be."""
        self.refused += 1
        if len(self.refusals) < self.refusals_max:
            text = f"{problem.problem}; {problem.cure}" if problem.cure else problem.problem
            self.refusals.append(SkippedRecord(place=problem.place, problem=text))


def object_record(
    tree: JsonObject,
    op: Op,
    *,
    source: str,
    position: str,
    order: tuple[int, int],
    observed_at: Instant | None = None,
    epoch: int = 0,
    losses: tuple[Loss, ...] = (),
    quality: Quality = Quality.FULL,
) -> Record:
    """A record of an object that is given in full by a source without actors.

    `order` is the number of the source and the position in it. Raises InputError when the object
    does not say what it is.
    """
    place = f"{source}:{position}"
    key = kinds.key_of(tree, place)
    group, version = kinds.split_version(json_tree.text(tree, "apiVersion"))
    resource_version = meta.resource_version(tree)
    uid = meta.uid(tree)
    missing: list[Loss] = [Loss.NO_ACTOR, *losses]
    if not uid:
        missing.append(Loss.NO_UID)
    if not resource_version:
        missing.append(Loss.NO_RV)
    time_quality = TimeQuality.EXACT
    if observed_at is None:
        observed_at = times.derive(tree)
        time_quality = TimeQuality.DERIVED
    if observed_at is None:
        time_quality = TimeQuality.NONE
        missing.append(Loss.NO_TIME)
    return Record(
        source=source,
        position=position,
        op=op,
        group=group,
        version=version,
        resource=key.resource,
        kind=json_tree.text(tree, "kind"),
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        resource_version=resource_version,
        object=tree,
        object_quality=quality,
        observed_at=observed_at,
        time_quality=time_quality,
        order_key=(epoch, comparable_version(resource_version), 0, *order),
        losses=tuple(sorted(set(missing))),
    )

"""The shared parts of readers: options, notes, and records made from recorded objects."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.adapters.history import kinds, times
from app.adapters.history.limits import DEFAULT_LIMITS, ImportLimits
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import (
    ABSENT,
    Contradiction,
    Loss,
    Op,
    OrderKey,
    Quality,
    Record,
    TimeQuality,
    comparable_version,
)
from app.domain.objects.rules import Rules
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

PLACES_MAX = 3
"""Places that are listed with a note that applies to several."""

CONTRADICTIONS_MAX = 20
"""Contradictions between sources that are kept."""


Listing = tuple[str, str, str]
"""The source of a list, and the group and resource of its items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of an import.

    `format` overrides detection (`auto` detects). `at` is the moment of dumps, `now` the current
    time that a server would write into manifests (times of taints), `unwrap` the path of the field
    that holds the audit event in a cloud export. `one_counter` says that resource versions of
    different types come from one counter, as in an ordinary cluster; without it types are merged by
    time. `audit_list_baseline` takes lists in an audit log as baseline. `with_secrets` keeps
    Secrets and the data of ConfigMaps, which are left out otherwise. `keep_going` skips records
    that cannot be read and lists them; without it the error of a refusal also names the `way_on`,
    where that leaves something to read. With `rules`, manifests are admitted as a server of that
    release would (unknown fields, defaults, validation), dumps are checked for fields that the
    release does not know, and patches can be applied.
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
class DumpedPage:
    """A list in a file. `more` is the number of items that follow, None where nobody counted them.

    `first` is the namespace and name of the first item, as the server orders them. `is_followed`
    is true when the next page stands behind it in the same file.
    """

    source: str
    position: str
    group: str
    resource: str
    version: str
    items: int
    more: int | None
    first: str
    is_followed: bool = False

    @property
    def listing(self) -> Listing:
        return self.source, self.group, self.resource


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """The place and problem of something that was skipped because it cannot be read."""

    place: str
    problem: str


@dataclass(slots=True, kw_only=True)
class Notes:
    """The notes of an import for its report: guesses, content left out, refusals, contradictions.

    Up to `refusals_max` refusals and places left out are kept; all are counted. Up to
    `CONTRADICTIONS_MAX` contradictions between sources are kept; each is also a loss of its record.
    `pages` are the lists of all files, of which some may be pages of one. `unplaced` has source and
    position of each manifest without a namespace.
    """

    keep_going: bool = False
    refusals_max: int = DEFAULT_LIMITS.refusals_max
    texts: list[str] = field(default_factory=list)
    alike: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    refusals: list[SkippedRecord] = field(default_factory=list)
    refused: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)
    left_out: dict[tuple[str, str], int] = field(default_factory=dict)
    pages: list[DumpedPage] = field(default_factory=list)
    unplaced: set[tuple[str, str]] = field(default_factory=set)

    @contextmanager
    def reading(self, *, is_named: bool) -> Iterator[None]:
        """A context in which refusals are noted as losses, unless the user named the source itself.

        In a folder or an archive, one unreadable document does not discredit the others.
        """
        keep_going = self.keep_going
        self.keep_going = keep_going or not is_named
        try:
            yield
        finally:
            self.keep_going = keep_going

    def contradict(self, contradiction: Contradiction) -> None:
        """Keep a contradiction and its sentence, each once."""
        kept = self.contradictions
        if len(kept) < CONTRADICTIONS_MAX and contradiction not in kept:
            kept.append(contradiction)
            self.add(str(contradiction))

    def add(self, text: str) -> None:
        """Add a sentence once."""
        if text not in self.texts:
            self.texts.append(text)

    def add_alike(self, text: str, place: str) -> None:
        """Add a sentence that may apply to many places; it is shown once, with the first places."""
        self.alike.setdefault(text, []).append(place)

    def sentences(self) -> Iterator[str]:
        """All sentences, then the counts of content left out."""
        yield from self.texts
        for text, places in self.alike.items():
            more = len(places) - PLACES_MAX
            shown = ", ".join(places[:PLACES_MAX])
            yield f"{text}: {shown}" + (f" and {more} more" if more > 0 else "")
        yield from (f"{name}: {count}" for name, count in sorted(self.counts.items()))

    def count(self, name: str, amount: int = 1) -> None:
        """Count content that is left out."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def pass_over(self, place: str, reason: str, amount: int = 1) -> None:
        """Note content that is not part of a cluster's state, such as text between documents.

        Leaving it out loses nothing of the recording. A repeated reason in one place adds to its
        count.
        """
        key = (place, reason)
        if key in self.left_out:
            self.left_out[key] += amount
        elif len(self.left_out) < self.refusals_max:
            self.left_out[key] = amount

    def take_back(self, place: str, reason: str) -> None:
        """Take back that content was left out, which is read after all."""
        self.left_out.pop((place, reason), None)

    def refuse(self, problem: InputError) -> None:
        """Raise the problem, or note it when `keep_going` is set."""
        if self.keep_going:
            self.lose(problem)
            return
        raise problem

    def lose_repeated(self, keys: Sequence[str], place: str) -> None:
        """Note the values that were lost because their key occurs again in the same object."""
        if keys:
            more = f" and {len(keys) - PLACES_MAX} more" if len(keys) > PLACES_MAX else ""
            names = ", ".join(keys[:PLACES_MAX]) + more
            problem = f"keys that occur again in one object, of which the last counts: {names}"
            self.lose(InputError(problem, place=place))

    def lose_all_of(self, other: "Notes") -> None:
        """Note what was lost according to other notes."""
        for refusal in other.refusals:
            self.lose(InputError(refusal.problem, place=refusal.place))
        self.refused += other.refused - len(other.refusals)

    def forget_losses(self) -> None:
        """Forget what was lost so far."""
        self.refusals.clear()
        self.refused = 0

    def lose(self, problem: InputError) -> None:
        """Note an unreadable part of a cluster's state; reading continues."""
        self.refused += 1
        if len(self.refusals) < self.refusals_max:
            text = f"{problem.problem}; {problem.cure}" if problem.cure else problem.problem
            self.refusals.append(SkippedRecord(place=problem.place, problem=text))


def absent_record(
    key: ObjectKey,
    uid: Uid,
    *,
    source: str,
    order_key: OrderKey,
    observed_at: Instant | None = None,
) -> Record:
    """The end of an object that a later list of its kind lacks; no source has the deletion."""
    return Record(
        source=source,
        position=f"{ABSENT}{key}",
        op=Op.DELETED,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        observed_at=observed_at,
        order_key=order_key,
        losses=(Loss.COLLAPSED, Loss.NO_ACTOR, Loss.NO_RV, Loss.SYNTHETIC_DELETE),
    )


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
    """A record of a whole object from a source that does not record actors.

    `order` is the number of the source and the position in it. Raises InputError when the object
    has no kind, apiVersion or name, and for its metadata alone.
    """
    place = f"{source}:{position}"
    if tree.get("kind") == kinds.METADATA_ALONE:
        raise InputError(
            "it is the metadata of an object whose kind it does not show",
            place=place,
            cure="ask for whole objects, without as=PartialObjectMetadata",
        )
    key = kinds.key_of(tree, place)
    group, version = kinds.split_version(meta.api_version(tree))
    resource_version = meta.resource_version(tree)
    uid = meta.uid(tree)
    missing: list[Loss] = [Loss.NO_ACTOR, *losses]
    if not uid:
        missing.append(Loss.NO_UID)
    if not resource_version:
        missing.append(Loss.NO_RV)
    if times.contradict_writes(tree):
        missing.append(Loss.TIMES_CONTRADICT)
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
        kind=meta.kind(tree),
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

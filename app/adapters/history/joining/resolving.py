"""Resolution of ordered rows into the final stream of records: one per change, with its object.

Records of one change from several sources are joined, effects are applied to the last known state,
and contradictions of that state are made explicit: a new uid is a deletion and a creation, a change
of an unknown key is preceded by a baseline. Parity: history-formats.md 3.3, 3.4, 4.3.
"""

import dataclasses
from collections.abc import Iterator

import msgspec

from app.adapters.history import times
from app.adapters.history.joining import (
    acceptance,
    contradictions,
    effects,
    endings,
    fixed_parts,
    generations,
    merging,
    normalising,
    odd_times,
)
from app.adapters.history.joining.acceptance import Acceptance
from app.adapters.history.joining.generations import GenerationStep
from app.adapters.history.joining.missed_writes import KnownState, MissedWrites
from app.adapters.history.joining.rule_times import RuleTimes
from app.adapters.history.joining.spool import Row, Spool
from app.adapters.history.reading import Notes
from app.domain.errors import InputError
from app.domain.log import ObjectKey, doubts
from app.domain.log.records import (
    ABSENT,
    BoundEffect,
    Loss,
    Op,
    Quality,
    Record,
    TerminatingEffect,
    TimeQuality,
    join_losses,
)
from app.domain.objects.schema.structural import Schemas
from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.patches import PatchError
from app.domain.values.timestamps import Instant

_replace = msgspec.structs.replace


class Resolver:
    """Resolves the rows of a spool in one pass."""

    def __init__(self, spool: Spool, notes: Notes, schemas: Schemas | None = None) -> None:
        self._spool = spool
        self._schemas = schemas
        self._notes = notes
        self._known: dict[ObjectKey, KnownState] = {}
        self._judged_in: dict[str, dict[ObjectKey, None]] = {}
        # The existing pods and objects of devices, by namespace.
        self._acceptance = Acceptance()
        self._rule_times = RuleTimes()
        self._gone: dict[str, str] = {}
        # The deleted uids, with the version of the deletion where it is known.
        self._first_of: dict[str, Record] = {}
        # The first record of each uid of a pod or object of devices, without its object.
        self._tells_ends = False
        self._unseen = MissedWrites(spool, self._tree)

    def records(self, settled: list[Instant | None]) -> Iterator[Record]:
        """The final records, in order. `settled` are the instants of the rows in log order."""
        index = 0
        epoch = 0
        for group in merging.groups(self._spool.rows()):
            moment = settled[index]
            index += len(group)
            if group[0].epoch != epoch:
                epoch = group[0].epoch
                self._forget_versions()
                if group[0].record.op is not Op.GAP:
                    yield self._timed(self._restored(group[0].record), moment)
            row = self._joined(group)
            self._tells_ends = self._tells_ends or endings.tells_end(row.record)
            for record in self._resolve(row):
                yield self._timed(record, moment)
        if not self._tells_ends and len(self._unseen.ends) >= doubts.LOST_OF_MIN:
            yield self._without_ends(row.record)

    def _joined(self, rows: list[Row]) -> Row:
        """The row of one change, marked when its sources contradict each other."""
        joined = merging.merged(rows)
        contradiction = contradictions.find(rows) if len(rows) > 1 else None
        if contradiction is not None:
            self._notes.contradict(contradiction)
            joined.record = contradictions.marked(joined.record)
        return joined

    def _forget_versions(self) -> None:
        """Forget versions after a restore. Objects stay known until a later record changes them."""
        for known in self._known.values():
            known.own, known.is_own = "", False
        self._gone.clear()
        self._acceptance.forget()

    def _resolve(self, row: Row) -> Iterator[Record]:
        record = row.record
        if record.op in (Op.GAP, Op.CONTEXT):
            if record.code and record.op is Op.CONTEXT:
                yield from self._absent(row)
            yield record
            return
        known = self._known.get(record.key)
        if known is not None and record.uid and known.uid and record.uid != known.uid:
            is_late = record.op is Op.DELETED and not endings.is_of_successor(record, known.own)
            if is_late or record.uid in self._gone:
                yield self._late(row)
                return
            yield self._synthetic_delete(record, known)
            known = None
        if known is None and record.position.startswith(ABSENT):
            return  # the state that was derived is that it has ended
        if known is None and record.uid in self._gone:
            is_back = record.op in (Op.ADDED, Op.BASELINE) and row.own > self._gone[record.uid]
            if not is_back:
                yield self._late(row)
                return
        match record.op:
            case Op.BASELINE | Op.ADDED:
                yield from self._appeared(row, known)
            case Op.MODIFIED:
                yield from self._modified(row, known)
            case Op.DELETED if record.effect is not None and known is not None:
                yield from self._modified(row, known)
            case Op.DELETED:
                if record.resource == "namespaces" and endings.is_emptied(row.tree() or {}):
                    yield from self._left_behind(row)
                yield from self._deleted(row, known)

    def _absent(self, row: Row) -> Iterator[Record]:
        """The unrecorded end of an object, when a request is answered that it is not there."""
        known = self._known.get(row.record.key)
        if known is not None and endings.is_told_absent(row.record, known.record):
            yield from self._unseen_end(row, known)

    def _left_behind(self, row: Row) -> Iterator[Record]:
        """The unrecorded ends of the objects in a namespace that goes."""
        for key in list(self._judged_in.get(row.record.name, ())):
            yield from self._unseen_end(row, self._known[key])

    def _unseen_end(self, row: Row, known: KnownState) -> Iterator[Record]:
        """A gap of an object, and its end, unless the object is recorded later."""
        if endings.is_judged(known.record) and not endings.is_shown_later(
            self._spool, row, known.record
        ):
            self._notes.count("ends of objects that the log does not have")
            end = self._synthetic_delete(row.record, known)
            yield _replace(
                end,
                op=Op.GAP,
                object=None,
                object_quality=Quality.IDENTITY,
                losses=(Loss.GAP,),
                message="its end is not in the log: later lines show that it is gone",
            )
            yield end

    def _appeared(self, row: Row, known: KnownState | None) -> Iterator[Record]:
        record = row.record
        if known is None:
            final = self._with_object(row, None)
            if final is not None:
                yield self._keep(row, self._accepted(row, final, None))
            return
        if not row.own or row.own <= known.own:
            return
        # It is known in an older state, so an unrecorded change happened.
        losses = join_losses(record.losses, (Loss.COLLAPSED,))
        changed = _replace(record, op=Op.MODIFIED, losses=losses, object=row.tree())
        yield self._keep(row, self._fitting(changed, known, self._step(row, known)))

    def _modified(self, row: Row, known: KnownState | None) -> Iterator[Record]:
        record = row.record
        if known is not None and row.own and row.own <= known.own:
            if record.actor is not None:
                yield _replace(record, op=Op.CONTEXT, message="nothing changed", object=None)
            return
        final = self._with_object(row, known)
        if final is None:
            yield self._unknown_change(record)
            return
        final = self._accepted(row, final, known)
        if known is None:
            if not final.uid:
                final = _replace(final, uid=meta.uid(final.object or {}))
            losses = join_losses(final.losses, (Loss.SYNTHETIC_CREATE,))
            yield _replace(final, op=Op.BASELINE, losses=losses, actor=None, verb="")
        elif record.object_quality is not Quality.FULL and self._is_settled(row, known, final):
            yield from self._settled(row, known, final)
            return
        else:
            step = self._step(row, known)
            if step is GenerationStep.TOO_LARGE or self._unseen.shows(final, known):
                yield self._missed_change(record)
            final = self._fitting(final, known, step)
        yield self._keep(row, _replace(final, op=Op.MODIFIED))
        if known is not None and endings.is_doubtful(record, known.record):
            yield self._unknown_end(record)

    def _is_settled(self, row: Row, known: KnownState, final: Record) -> bool:
        """True if a write without a recorded state ended its object, or changed nothing."""
        before, after = self._tree(known) or {}, final.object or {}
        return endings.ends(row.record, before, after) or (
            isinstance(row.record.effect, TerminatingEffect) and before == after
        )

    def _settled(self, row: Row, known: KnownState, final: Record) -> Iterator[Record]:
        record = row.record
        if not endings.is_over(final.object or {}):
            yield _replace(record, op=Op.CONTEXT, effect=None, message="nothing changed")
            return
        if endings.is_doubtful(record, known.record):
            yield self._unknown_end(record)
        end = _replace(record, op=Op.DELETED, effect=None)
        yield from self._deleted(dataclasses.replace(row, record=end), known)

    def _deleted(self, row: Row, known: KnownState | None) -> Iterator[Record]:
        record = _replace(row.record, effect=None)
        tree = row.tree()
        if tree is None and known is not None:
            tree = self._tree(known)
            quality = known.record.object_quality
            record = _replace(
                record,
                object_quality=quality,
                version=known.record.version,
                kind=record.kind or known.record.kind,
                uid=record.uid or known.uid,
            )
        if known is None and tree is not None:
            losses = join_losses(record.losses, (Loss.SYNTHETIC_CREATE,))
            yield _replace(record, op=Op.BASELINE, losses=losses, object=tree, actor=None, verb="")
        elif known is None:
            record = _replace(record, object_quality=Quality.IDENTITY)
        elif self._unseen.shows(_replace(record, object=tree), known):
            yield self._missed_change(record)
        self._forget(record.key)
        if record.uid:
            self._gone[record.uid] = row.own or (known.own if known is not None else "")
            self._acceptance.remove(row)
        yield self._accepted(row, _replace(record, object=tree), known)

    def _with_object(self, row: Row, known: KnownState | None) -> Record | None:
        """The record with the object after the change; None when the object cannot be derived."""
        record = row.record
        tree = row.tree()
        if record.effect is None:
            if tree is not None and known is not None and effects.is_unanswered_update(record):
                tree = effects.of_subresource(self._tree(known) or {}, tree, record.subresource)
            return None if tree is None else _replace(record, object=tree)
        before = self._tree(known) if known is not None else tree
        if before is None:
            return None
        node = self._node(record.effect.node) if isinstance(record.effect, BoundEffect) else None
        try:
            after = effects.apply(
                before,
                record.effect,
                record.observed_at,
                subresource=record.subresource,
                node=node,
                answered=tree,
                schemas=self._schemas,
            )
            if self._schemas is not None:
                normalising.check_object(record, after, self._schemas)
        except (PatchError, InputError) as problem:
            text = problem.problem if isinstance(problem, InputError) else problem
            self._notes.add(f"{record.place}: a change could not be applied: {text}")
            return None
        changes: dict[str, object] = {"object": after, "effect": None, "uid": record.uid}
        if known is not None:
            changes |= {
                "version": known.record.version,
                "kind": known.record.kind,
                "uid": record.uid or known.uid or meta.uid(after),
            }
        return _replace(record, **changes)

    def _keep(self, row: Row, record: Record) -> Record:
        if record.uid and endings.is_judged(record):
            first = self._first_of.get(record.uid)
            if first is None:
                self._first_of[record.uid] = _replace(record, object=None)
            elif first.key != record.key:
                self._notes.contradict(contradictions.of_uid(first, record))
                record = contradictions.marked(record)
        derived = record.object_quality is Quality.RECONSTRUCTED or (
            effects.is_unanswered_update(record)
        )
        own = row.own or (self._known[record.key].own if record.key in self._known else "")
        self._known[record.key] = KnownState(
            uid=record.uid,
            own=own,
            is_own=bool(row.own),
            record=_replace(record, object=None),
            row=None if derived else row.row,
            tree=record.object if derived else None,
            node=core.node_name(record.object or {}) if record.resource == "pods" else "",
            created=times.creation(record.object or {}),
            fixed=fixed_parts.of(record),
        )
        if record.namespace and endings.is_judged(record):
            self._judged_in.setdefault(record.namespace, {})[record.key] = None
        return record

    def _forget(self, key: ObjectKey) -> None:
        """The object is gone."""
        self._known.pop(key, None)
        objects = self._judged_in.get(key.namespace)
        if objects is not None:
            objects.pop(key, None)
            if not objects:
                del self._judged_in[key.namespace]

    def _tree(self, known: KnownState) -> JsonObject | None:
        """The last state. A derived state is copied, because records pass their objects on."""
        return json_tree.copy(known.tree) if known.row is None else self._spool.tree(known.row)

    def _node(self, name: str) -> JsonObject | None:
        known = self._known.get(ObjectKey("", "nodes", "", name))
        return None if known is None else self._tree(known)

    def _synthetic_delete(self, record: Record, known: KnownState) -> Record:
        """The deletion that nobody recorded, before a new object takes the name."""
        self._forget(known.record.key)
        self._gone[known.uid] = known.own
        self._unseen.ends.add(known.record.key)
        return _replace(
            known.record,
            op=Op.DELETED,
            source=record.source,
            position=record.position,
            object=self._tree(known),
            observed_at=record.observed_at,
            time_quality=TimeQuality.DERIVED,
            losses=join_losses((), (Loss.SYNTHETIC_DELETE, Loss.NO_ACTOR, Loss.NO_RV)),
            resource_version="",
            actor=None,
            verb="",
            request_id="",
        )

    def _late(self, row: Row) -> Record:
        record = row.record
        contradiction = self._acceptance.written_when_gone(row)
        if contradiction is None:
            self._notes.count("records about an object that was already deleted")
        else:
            self._notes.contradict(contradiction)
            record = contradictions.marked(record)
        return _replace(record, op=Op.CONTEXT, object=None, effect=None, message="it was gone")

    def _accepted(self, row: Row, final: Record, known: KnownState | None) -> Record:
        """The record, marked when no server accepts such a write upon the last known state."""
        own = "" if known is None else known.own
        before = None if known is None else known.record
        contradiction = self._acceptance.contradiction(row, before, own)
        if contradiction is None and known is not None and known.uid == final.uid:
            contradiction = acceptance.made_anew(known.record, known.created, final)
            changed = acceptance.changed(known.record, known.fixed, final)
            if contradiction is None and changed is not None:
                self._notes.contradict(changed)
                return contradictions.marked(final, Loss.IMMUTABLE)
        if contradiction is None:
            return final
        self._notes.contradict(contradiction)
        return contradictions.marked(final)

    def _step(self, row: Row, known: KnownState) -> GenerationStep:
        """The step of the generation from the last known state, as far as both are shown whole.

        After a restore the generation may be an earlier one.
        """
        record, before, schemas = row.record, known.record, self._schemas
        if schemas is None or not generations.counts(record):
            return GenerationStep.RIGHT
        is_whole = before.object_quality is record.object_quality is Quality.FULL
        is_one = bool(record.uid) and record.uid == known.uid and record.version == before.version
        if not (is_whole and is_one and known.is_own and row.own):
            return GenerationStep.RIGHT
        return generations.step(schemas, self._tree(known) or {}, row.tree() or {})

    def _fitting(self, record: Record, known: KnownState, step: GenerationStep) -> Record:
        """The record, marked when its generation contradicts that of the last known state."""
        if step is not GenerationStep.TOO_SMALL:
            return record
        self._notes.contradict(contradictions.of_generation(known.record, record))
        return contradictions.marked(record, Loss.IMMUTABLE)

    def _missed_change(self, record: Record) -> Record:
        self._notes.count("changes that the log does not have: a later write shows what they did")
        message = "a change before this write is not in the log: the write shows what it did"
        return _gap_of(record, (Loss.GAP,), message)

    def _unknown_end(self, record: Record) -> Record:
        self._notes.count("deletions without a recorded answer: whether they ended is not known")
        message = "whether the deletion ended the object at once was not recorded"
        return _gap_of(record, (Loss.GAP, Loss.NO_DELETE_STATE), message)

    def _restored(self, first: Record) -> Record:
        """The gap of everything between two records, of which the second has a lower version."""
        message = (
            "versions begin anew: the store was restored from a backup, or the log of another "
            "cluster follows, so any object may have changed"
        )
        self._notes.add(f"{first.place}: {message}")
        return Record(
            source=first.source,
            position=first.position,
            op=Op.GAP,
            object_quality=Quality.IDENTITY,
            time_quality=TimeQuality.NONE,
            order_key=first.order_key,
            losses=(Loss.GAP,),
            message=message,
        )

    def _without_ends(self, last: Record) -> Record:
        """The gap at the end of a log that has no deletion, although objects were deleted."""
        message = (
            f"the log has no deletion, and later lines show that {len(self._unseen.ends)} objects "
            "were deleted: any object may have ended since its last write"
        )
        self._notes.add(message)
        return Record(
            source=last.source,
            position=last.position,
            op=Op.GAP,
            object_quality=Quality.IDENTITY,
            time_quality=TimeQuality.NONE,
            order_key=last.order_key,
            losses=(Loss.GAP, Loss.NO_DELETES),
            message=message,
        )

    def _unknown_change(self, record: Record) -> Record:
        losses = join_losses(record.losses, (Loss.GAP,))
        return _replace(
            record,
            op=Op.GAP,
            object=None,
            effect=None,
            losses=losses,
            message="a change of an object whose state before is not known",
        )

    def _timed(self, record: Record, settled: Instant | None) -> Record:
        """The record with its instant in log order, marked when its times contradict others.

        Of a log in which all fractions of seconds were cut, only the second of an answer is known.
        """
        is_odd = record.time_quality is TimeQuality.EXACT and odd_times.contradict(record, settled)
        is_odd |= self._rule_times.contradict(record)
        if is_odd or times.is_allocated_before_creation(record.object or {}):
            losses = join_losses(record.losses, (Loss.TIMES_CONTRADICT,))
            record = _replace(record, losses=losses)
        if record.actor and Loss.COARSE_TIME in record.losses:
            record = self._to_the_second(record)
        return _replace(record, settled_at=settled)

    def _to_the_second(self, record: Record) -> Record:
        """A request whose time has no fraction: it was cut, unless others have theirs."""
        if self._spool.is_coarse:
            return _replace(record, time_quality=TimeQuality.DERIVED, asked_at=None)
        losses = tuple(loss for loss in record.losses if loss is not Loss.COARSE_TIME)
        return _replace(record, losses=losses)


def _gap_of(record: Record, losses: tuple[Loss, ...], message: str) -> Record:
    """A gap of the object of a record, at the place of that record."""
    return _replace(
        record,
        op=Op.GAP,
        object=None,
        effect=None,
        object_quality=Quality.IDENTITY,
        losses=losses,
        resource_version="",
        actor=None,
        verb="",
        request_id="",
        message=message,
    )

"""The decisions of the controllers: one row per decision in the log, with its reasons.

A decision never changes, so rows are only appended. The body is kept as bytes and decoded when its
row is read.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from app.domain.log import EventType, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values import json_tree
from app.domain.values.fields import decision_body
from app.domain.values.json_tree import JsonObject
from projections.packed import PackedList
from projections.row_changes import AppendedRows, PagedView
from projections.tables import DECISIONS

PLAIN_MAX = 5_000
"""The latest decisions, which are not compressed."""

LOADED_AT_ONCE = 1_000
"""Decisions that are decoded at once when a state is loaded."""

_DECIDED_TYPE = EventType.DECISION_RECORDED


class _StoredDecision(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One decision: the fields of its stamp, and the body as stored."""

    revision: Revision
    time: int
    namespace: str
    name: str
    observed: int
    cause: int
    actor: str
    body: bytes


class DecisionsProjection(PagedView):
    """Folds `DecisionRecorded` events.

    Example: after a decision about pod `default/a` at 7 and one at 9, the table has the rows 7 and
    9, both of the pod.
    """

    name = "decisions"
    version = 2

    def __init__(self) -> None:
        self.revision = Revision(0)
        self._decided = PackedList(_StoredDecision, PLAIN_MAX)
        self._revisions = array("q")
        self._changes = AppendedRows(DECISIONS.name, self._key, self._row)

    def _take(self, page: Page) -> None:
        """Append the decisions; other events only move the revision."""
        new: list[_StoredDecision] = []
        for event in page.events:
            if event.type is _DECIDED_TYPE:
                stamp, key = event.stamp, event.key
                new.append(
                    _StoredDecision(
                        event.revision,
                        stamp.time,
                        key.namespace,
                        key.name,
                        stamp.observed,
                        stamp.cause,
                        stamp.actor.user,
                        event.body,
                    )
                )
        self._append(new)

    def tables(self) -> tuple[Table, ...]:
        """One row per decision."""
        return (DECISIONS,)

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys of the decisions added since the last call."""
        return self._changes.take(len(self._decided))

    def row(self, table: str, key: RowKey) -> Row | None:
        """The row of the decision at that revision."""
        revision = int(key[0])
        number = bisect_left(self._revisions, revision)
        is_known = number < len(self._revisions) and self._revisions[number] == revision
        return self._changes.row(number) if is_known and table == DECISIONS.name else None

    def state_hash(self) -> str:
        """The hash over all rows."""
        return self._changes.state_hash(len(self._decided))

    def dump(self) -> bytes:
        """All decisions, in order."""
        return _encoder.encode((self.revision, list(self._decided)))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, decided = _snapshot.decode(state)
        for first in range(0, len(decided), LOADED_AT_ONCE):
            part = decided[first : first + LOADED_AT_ONCE]
            self._append([*map(_decode_decision, part)])

    def _append(self, decided: Sequence[_StoredDecision]) -> None:
        self._decided.extend(decided)
        self._revisions.extend([one.revision for one in decided])

    def _key(self, number: int) -> RowKey:
        return (self._revisions[number],)

    def _row(self, number: int) -> Row:
        decided = self._decided[number]
        body = _body(decided.body)
        return {
            "revision": decided.revision,
            "time": decided.time,
            "controller": json_tree.text(body, "controller"),
            "resource": json_tree.text(body, "resource"),
            "namespace": decided.namespace,
            "name": decided.name,
            "outcome": json_tree.text(body, "outcome"),
            "observed": decided.observed,
            "cause": decided.cause,
            "actor": decided.actor,
            "commands": min(json_tree.integer(body, "commands") or 0, 2**63 - 1),
            "plan": json_tree.text(body, "plan"),
            "inputs": dict(decision_body.inputs(body)),
            "summary": dict(json_tree.mapping(body, "summary")),
            "causes": json_tree.objects(body, "summary", "causes"),
        }


def _body(text: bytes) -> JsonObject:
    tree: Any = msgspec.json.decode(text)
    return tree if isinstance(tree, dict) else {}


_encoder = msgspec.msgpack.Encoder()
_snapshot = msgspec.msgpack.Decoder(tuple[Revision, list[msgspec.Raw]])
_decode_decision = msgspec.msgpack.Decoder(_StoredDecision).decode

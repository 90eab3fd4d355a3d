"""An independent judge of a recording: compares its log with the log of the recorded cluster.

It reads the JSON lines of `redra log` and nothing else of redra. The recorded cluster is another
redra, so the resource version of an object is the revision of its event there.
"""

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

SYNTHETIC = {"synthetic_create", "synthetic_delete", "collapsed"}
UP_TO = re.compile(r"changes of (\S+) up to resource version (\d+) are not recorded")


@dataclass
class Verdict:
    """The result of a comparison; `wrong` is empty when the recording tells the truth.

    `unseen` are changes that nobody can miss: lost lines of a watch about objects that had changed
    again, or had gone, before the next comparison with the cluster.
    """

    wrong: list = field(default_factory=list)
    gaps: list = field(default_factory=list)
    late: int = 0
    unseen: list = field(default_factory=list)
    shown: int = 0
    missing: int = 0

    def check(self, is_right, *words):
        if not is_right:
            self.wrong.append(" ".join(map(str, words)))


@dataclass(frozen=True)
class Row:
    """An event of either log; `version` is that in the cluster."""

    kind: str
    type: str
    namespace: str
    name: str
    uid: str
    version: int
    content: str
    position: str = ""
    verb: str = ""
    losses: frozenset = frozenset()

    @property
    def key(self):
        return self.kind, self.namespace, self.name

    @property
    def says(self):
        return self.type, self.key, self.uid, self.content


def compare(source, recording):
    """The verdict about a recording; both are lines of `redra log`."""
    source = [json.loads(line) for line in source]
    recording = [json.loads(line) for line in recording]
    kinds = set(recording[0]["payload"]["object"]["kinds"])
    facts = {
        row.version: row for row in map(_fact, source) if row is not None and row.kind in kinds
    }
    return _Comparison(facts, recording).verdict()


def _fact(event):
    return _row(event, event["revision"]) if event["type"].startswith("Object") else None


def _row(event, version):
    payload, origin = event["payload"], event["stamp"].get("origin") or {}
    tree = json.loads(json.dumps(payload["object"]))
    tree.get("metadata", {}).pop("resourceVersion", None)
    group = payload["group"]
    return Row(
        kind=f"{payload['resource']}.{group}" if group else payload["resource"],
        type=event["type"],
        namespace=payload["namespace"],
        name=payload["name"],
        uid=payload["uid"],
        version=version,
        content=json.dumps(tree, sort_keys=True),
        position=origin.get("position", ""),
        verb=event["stamp"].get("verb", ""),
        losses=frozenset(origin.get("losses", ())),
    )


def _state(rows):
    state = {}
    for row in rows:
        if row.type == "ObjectDeleted":
            state.pop(row.key, None)
        else:
            state[row.key] = row.uid, row.content
    return state


class _Comparison:
    def __init__(self, facts, recording):
        self.result = Verdict()
        self.facts = facts
        self.rows = []
        self.lost_until = defaultdict(int)
        self.has_gap = set()
        self.last_report = None
        self.begin = 0
        self.newest = 0
        self.watched = {}
        self._read(recording)

    def verdict(self):
        self._judge_completeness()
        self._judge_end()
        self.result.shown = len(self.rows)
        return self.result

    def _read(self, recording):
        check = self.result.check
        times = [event["stamp"]["time"] for event in recording]
        check(times == sorted(times), "times fall")
        revisions = [event["revision"] for event in recording]
        check(revisions == list(range(1, len(revisions) + 1)), "revisions have gaps")
        for event in recording:
            if event["type"] == "HistoryImported":
                self._take_report(event["payload"]["object"])
            elif event["type"] == "GapObserved":
                self._take_gap(event["payload"]["object"]["message"])
            else:
                version = (event["stamp"].get("origin") or {}).get("resource_version") or 0
                self._take_row(_row(event, int(version)))

    def _take_report(self, body):
        if body["phase"] == "begun":
            return
        if self.last_report is None:
            self.begin = max(map(int, body["positions"].values()))
        self.last_report = body
        named = body["counted"]["gapCount"]
        gaps = len(self.result.gaps)
        self.result.check(named == gaps, f"a report counts {named} gaps of {gaps}")

    def _take_gap(self, message):
        self.result.gaps.append(message)
        if match := UP_TO.search(message):
            kind, version = match[1], int(match[2])
            self.has_gap.add(kind)
            self.lost_until[kind] = max(self.lost_until[kind], version)

    def _take_row(self, row):
        self.rows.append(row)
        if row.verb == "baseline":
            self.result.check(row.position == "list" and not self.last_report, "baseline", row.key)
        elif row.position == "watch":
            self._take_watched(row)
        else:
            self._take_listed(row)

    def _take_watched(self, row):
        check, fact = self.result.check, self.facts.get(row.version)
        check(fact is not None and fact.says == row.says, "not so in the cluster:", row)
        check(row.version not in self.watched, "shown twice:", row.version, row.key)
        check(row.version > self.begin, "shown in the baseline, too:", row.version, row.key)
        self.watched[row.version] = row
        is_late = "late" in row.losses
        self.result.late += is_late
        check(is_late == (row.version < self.newest), "order of", row.version, row.key, row.losses)
        self.newest = max(self.newest, row.version)

    def _take_listed(self, row):
        """A row that a list after a gap gave."""
        check = self.result.check
        check(row.kind in self.has_gap, "listed without a gap:", row.key)
        check(bool(row.losses & SYNTHETIC), "listed as if watched:", row.key, row.losses)
        if row.type != "ObjectDeleted":
            fact = self.facts.get(row.version)
            # A list tells a state, not whether the object was new.
            is_so = fact is not None and fact.says[1:] == row.says[1:]
            check(is_so, "listed otherwise than in the cluster:", row)

    def _judge_completeness(self):
        """Every change since the beginning is shown, or a gap of its kind reaches over it."""
        end = max(self.watched, default=self.begin)
        later = {row.uid: row.version for row in self.rows}
        ended = {each.uid for each in self.facts.values() if each.type == "ObjectDeleted"}
        for version, fact in self.facts.items():
            if not self.begin < version <= end or version in self.watched:
                continue
            self.result.missing += 1
            if version <= self.lost_until[fact.kind]:
                continue
            # Of an object that came and went nothing is left; an older change is overtaken.
            is_change = fact.type == "ObjectUpdated"
            is_unseen = fact.uid in ended and fact.uid not in later
            if is_unseen or (is_change and later.get(fact.uid, 0) > version):
                self.result.unseen.append((version, fact.type, fact.key))
            else:
                self.result.wrong.append(f"missing without a gap: {version} {fact.type} {fact.key}")

    def _judge_end(self):
        end = max(self.watched, default=self.begin)
        state = _state(fact for version, fact in sorted(self.facts.items()) if version <= end)
        recorded = _state(self.rows)
        for key in sorted(state.keys() | recorded.keys()):
            self.result.check(state.get(key) == recorded.get(key), "ends otherwise:", key)
        baseline = _state(row for row in self.rows if row.verb == "baseline")
        begun = _state(
            fact for version, fact in sorted(self.facts.items()) if version <= self.begin
        )
        self.result.check(baseline == begun, "another state at the beginning")
        last = self.last_report or {}
        self.result.check(last.get("phase") == "stopped", "the last report is", last.get("phase"))
        counted = Counter()
        for kind in last.get("counted", {}).get("kinds", ()):
            counted += Counter(late=kind["losses"].get("late", 0))
        self.result.check(counted["late"] == self.result.late, "late changes in the report")

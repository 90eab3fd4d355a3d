"""Asks a served history about drawn moments and objects; compares the answers with the facts."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tests.api.serving import Server, serving
from tests.truth import answers, changes, courses, lives, relations, telling
from tests.truth.facts import Facts
from tests.truth.histories import TrueHistory, lines_of
from tests.truth.raw import Key

BELOW = "/redra/v1/histories/default"
ABOUT_ALL = (answers.views, answers.device_map, answers.capacity, answers.findings)
RELATIONS = (
    relations.largest_fits,
    relations.named_are_as_found,
    relations.devices_are_as_mapped,
)


@dataclass(slots=True)
class Judgement:
    """How many answers were compared, and each difference with the revision of its moment."""

    pairs: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, history: str, revision: int, differences: Iterable[str]) -> None:
        """Takes in the differences of one answer."""
        self.pairs += 1
        self.wrong += [f"{history}@{revision} {one}" for one in differences]


async def judge(
    history: TrueHistory, seed: int, *, moments: int, objects: int, judgement: Judgement
) -> None:
    """Compares answers at this many drawn moments, about so many objects of each kind."""
    pick = random.Random(seed)
    async with serving(store=history.store) as server:
        log = await server.raw("GET", f"{BELOW}/events?limit=100000")
        lines = lines_of(log.text)
        happened, known = history.moments(lines)
        differences = await telling.timeline(lines, _entries(server), pick, filters=moments)
        judgement.note(history.name, lines[-1]["revision"], differences)
        for revision, version in sorted(pick.sample(known, min(moments, len(known)))):
            facts = Facts(happened.at(version), with_rules=history.with_rules)
            for compare in ABOUT_ALL:
                differences = await compare(facts, _ask(server, revision))
                judgement.note(history.name, revision, differences)
            for relate in RELATIONS:
                judgement.note(history.name, revision, await relate(_ask(server, revision)))
            differences = await changes.blasts(facts, _propose(server, revision), pick)
            judgement.note(history.name, revision, differences)
            until = [line for line in lines if line["revision"] <= revision]
            for device in pick.sample(sorted(facts.devices), min(objects, len(facts.devices))):
                differences = await lives.life(until, _ask(server, revision), device)
                judgement.note(history.name, revision, differences)
            differences = await courses.judge(until, _ask(server, revision), pick, objects)
            judgement.note(history.name, revision, differences)
            for key in _drawn(pick, facts, objects):
                differences = await answers.why(facts, _ask(server, revision), key)
                judgement.note(history.name, revision, differences)


def _ask(server: Server, revision: int) -> answers.Ask:
    async def ask(question: str, **parameters: object) -> dict:
        query = urlencode({**parameters, "at": revision})
        return await server.get(f"{BELOW}/{question}?{query}")

    return ask


def _propose(server: Server, revision: int) -> changes.Propose:
    async def propose(proposal: dict) -> dict:
        return await server.post(f"{BELOW}/blast?at={revision}", proposal, code=200)

    return propose


def _entries(server: Server) -> telling.Lines:
    async def ask(**parameters: str) -> list[dict]:
        answer = await server.raw("GET", f"{BELOW}/entries?{urlencode(parameters)}")
        assert answer.status_code == 200, answer.text
        _, *rows, end = lines_of(answer.text)
        assert end["count"] == len(rows)
        return rows

    return ask


def _drawn(pick: random.Random, facts: Facts, objects: int) -> list[Key]:
    by_kind: dict[str, list[Key]] = defaultdict(list)
    for key in facts.state:
        if key[0] in answers.KINDS:
            by_kind[key[0]].append(key)
    by_kind["device"] = [("device", "", "/".join(id)) for id in facts.devices]
    by_kind["pool"] = [("pool", "", "/".join(place)) for place in facts.pools]
    return [
        key
        for _, keys in sorted(by_kind.items())
        for key in pick.sample(sorted(keys), min(objects, len(keys)))
    ]

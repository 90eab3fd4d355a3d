"""Changes that are made in all places of a log alike."""

import json
from collections.abc import Callable

from tests.adversary.log import Json, Log


def each_text(log: Log, change: Callable[[str], str]) -> None:
    """Changes the text of every line."""
    log.lines = [json.loads(change(json.dumps(line))) for line in log.lines]


def in_answers(log: Log, change: Callable[[Json], None]) -> None:
    """Changes each object of JSON in what was sent and answered, the outer ones first."""

    def walk(node: object) -> None:
        if isinstance(node, dict):
            change(node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            walk(line.get(side))

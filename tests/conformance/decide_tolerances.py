"""Halves and doubles every constant of the comparison, and looks for changed verdicts.

`python -m tests.conformance.decide_tolerances [RECORDING…]` prints the rows of the table that
change one; by default all recordings are decided, 280 replays. The suite does the same with one.
"""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import fields, replace
from unittest import mock

from app.analysis.replay import tolerances
from app.analysis.replay.differences import Aspect
from app.analysis.replay.report import DecideReport
from app.analysis.replay.tolerances import TABLE, Tolerances
from app.bootstrap import process_settings, replays, stores
from tests.conformance.recordings import RECORDINGS
from tests.shared_data import shared_path

LITERAL = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.RULES)


class Recorded:
    """A recording that is imported once and decided under changed tables."""

    def __init__(self, name: str) -> None:
        profile = "1.36.2" if name == "e-taints-rules-ignored" else "1.36"
        self._settings = process_settings.settings(profile=profile)
        self._store = stores.memory_store()
        self._path = shared_path("histories", name, "audit.jsonl.gz")
        self._history = ""
        self._plain: DecideReport | None = None

    async def verdict(self, table: Tolerances) -> tuple[bool, list[dict[str, int]]]:
        """Whether all is explained, and what differs about placements and evictions.

        Where nothing differs that does not differ under the plain table, the classes are those that
        were proved there; otherwise they are proved again.
        """
        if self._plain is None:
            self._history = await replays.load_files(self._store, self._settings, (self._path,))
            self._plain = await self._decide(TABLE)
        report = await self._decide(table, runs_max=0)
        if not _places(report) <= _places(self._plain):
            report = await self._decide(table)
            return _verdict(report, report.explained)
        return _verdict(report, self._plain.explained)

    async def _decide(self, table: Tolerances, **changed: int) -> DecideReport:
        settings = replace(self._settings, **{f"decide_{k}": v for k, v in changed.items()})
        with mock.patch.object(tolerances, "TABLE", table):
            return await replays.decide(self._store, settings, self._history, "", lambda *_: None)


def changed_tables() -> Iterator[tuple[str, Tolerances]]:
    """The tables with one row halved or doubled, and the name of the row."""
    for row in fields(TABLE):
        value = getattr(TABLE, row.name)
        for number in (value // 2, value * 2):
            yield f"{row.name}={number}", replace(TABLE, **{row.name: number})


def _places(report: DecideReport) -> set[tuple[str, str]]:
    return {(found.aspect.value, found.subject) for found in report.differences}


def _verdict(report: DecideReport, is_explained: bool) -> tuple[bool, list[dict[str, int]]]:
    return is_explained, [dict(report.aspects[aspect].different) for aspect in LITERAL]


async def _main(names: list[str]) -> None:
    for name in names:
        recorded = Recorded(name)
        plain = await recorded.verdict(TABLE)
        tables = list(changed_tables())
        others = [row for row, table in tables if await recorded.verdict(table) != plain]
        print(f"{name}: {len(tables)} tables, another verdict by: {', '.join(others) or 'none'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", nargs="*", default=list(RECORDINGS))
    asyncio.run(_main(parser.parse_args().recordings))

"""Counts what a pod costs in all processes: `python -m bench.counts [SHAPE…] [--pods N]`.

The main process runs on the embedded PostgreSQL. The projector runs in this process afterwards, in
pages of about a second's events, as it does beside a busy server, and is counted for itself.
Function calls are counted with `sys.setprofile`, the database by its own statistics. Other
processes hardly change a figure. Shapes: pods with a claim each (`fill`), pods that come and go
(`steady`), pods of one claim (`shared`).
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import BuiltinFunctionType, FrameType

import anyio
import asyncpg
import msgspec

from app.bootstrap import garbage_collection
from app.bootstrap.histories import open_histories, views_of
from app.bootstrap.process_settings import settings
from app.bootstrap.serving import supervise
from app.bootstrap.stores import open_store
from app.service.folding.projecting import FoldingBounds, Projector
from bench import cluster, shapes
from bench.cluster import DEVICES, Cluster
from bench.folder import temporary_data

SHAPES = ("fill", "steady", "shared")

PAGE = 1_000
"""Events that the projector writes at once: a busy history has about as many in a second."""

FLUSH_SECONDS = 10.5
"""An idle process of PostgreSQL reports its statistics within ten seconds."""

ROWS = (
    "events",
    "appends",
    "plans and single commands",
    "folds of controllers, with those of their parts",
    "calls of reconcile",
    "folds of views (of pages in the projector)",
    "objects pruned, with their parts",
    "encodings (JSON)",
    "decodings (JSON)",
    "hashes",
    "statements",
    "all calls",
    "transactions",
    "rows inserted",
    "rows updated",
    "rows deleted",
    "index entries read",
    "records of the journal",
    "bytes of the journal",
    "bytes of bodies",
)

_DATABASE = """
SELECT xact_commit AS "transactions", tup_inserted AS "rows inserted",
       tup_updated AS "rows updated", tup_deleted AS "rows deleted",
       (SELECT sum(idx_scan) FROM pg_stat_user_indexes) AS "index entries read",
       (SELECT wal_records FROM pg_stat_wal) AS "records of the journal",
       (SELECT wal_bytes FROM pg_stat_wal) AS "bytes of the journal"
FROM pg_stat_database WHERE datname = current_database()
"""

_UNREAD = """
SELECT indexrelname FROM pg_stat_user_indexes JOIN pg_index USING (indexrelid)
WHERE idx_scan = 0 AND NOT indisunique AND indrelid IN (
    SELECT relid FROM pg_stat_user_tables WHERE n_tup_ins > 0)
"""


class Calls:
    """Counts calls by what they do, while `counting`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._kinds: dict[object, str] = {}

    async def counting(self, work: Awaitable[object]) -> None:
        """Wait for the work, and count what this thread calls."""
        sys.setprofile(self._note)
        try:
            await work
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = _kind_of(code.co_filename, code.co_name)
        elif event == "c_call":
            kind = _kind_of_builtin(argument)
        else:
            return
        self.counts["all calls"] += 1
        if kind:
            self.counts[kind] += 1


_KINDS = (
    ("app/service/writing.py", "_append", "appends"),
    ("app/service/writing.py", "submit", "plans and single commands"),
    ("app/domain/controllers/", "fold", ROWS[3]),
    ("app/domain/controllers/", "reconcile", ROWS[4]),
    ("projections/", "_take", ROWS[5]),
    ("app/analysis/views.py", "fold", ROWS[5]),
    ("app/domain/objects/schema/prune.py", "clean_object", "objects pruned, with their parts"),
    ("asyncpg/connection.py", "_execute", "statements"),
    ("asyncpg/connection.py", "_executemany", "statements"),
)
"""What calls of functions count for, by the place of the function in the tree."""


def _kind_of(path: str, name: str) -> str:
    for place, function, kind in _KINDS:
        if place in path and name == function:
            return kind
    return ""


def _kind_of_builtin(function: object) -> str:
    if not isinstance(function, BuiltinFunctionType):
        return ""
    owner = function.__self__
    if isinstance(owner, msgspec.json.Encoder):
        return "encodings (JSON)"
    if isinstance(owner, msgspec.json.Decoder) or function is msgspec.json.decode:
        return "decodings (JSON)"
    return "hashes" if function is hashlib.sha256 else ""


async def measure(shape: str, pods: int, nodes: int) -> None:
    """Run a shape, and print what it took for each pod."""
    with temporary_data() as folder:
        chosen = settings(data=folder)
        async with open_store(chosen, migrate=True) as store, open_histories(store, chosen) as all_:
            supervise(all_, store, chosen, with_projector=False)
            runtime = await all_.create("bench")
            made = Cluster(store=store, settings=chosen, runtime=runtime, has_tables=False)
            await cluster.prepare(made, nodes, pods_a_node=max(110, pods))
            run = await _work_of(made, shape, nodes)
            projector = Projector(
                log=store.log,
                views=store.views,
                history=runtime.info.id,
                make=views_of(runtime.info.settings),
                bounds=FoldingBounds(page_max=PAGE),
            )
            await projector.open()
            await run("first", pods)
            await projector.catch_up()
            connection = await asyncpg.connect(store.url)
            columns: list[Counter[str]] = []
            after = runtime.head.revision
            for work in (lambda: run("second", pods), projector.catch_up):
                before, calls = await _statistics(connection), Calls()
                await calls.counting(work())
                calls.counts.update(await _statistics(connection))
                calls.counts.subtract(before)
                columns.append(calls.counts)
            head = runtime.head.revision
            bodies = await store.log.read(runtime.info.id, after=after, limit=head - after)
            columns[0]["events"] = head - after
            columns[0]["bytes of bodies"] = sum(len(event.body) for event in bodies)
            unread = [row[0] for row in await connection.fetch(_UNREAD)]
            await connection.close()
    print(f"\n{shape}: {pods} pods, {nodes} nodes\n\n| a pod | main | projector |\n|---|---|---|")
    for row in ROWS:
        cells = [f"{column[row] / pods:,.2f}" for column in columns]
        print(f"| {row} | {cells[0]} | {cells[1]} |")
    print(f"indexes that nothing has read: {', '.join(unread) or 'none'}", flush=True)


async def _work_of(
    made: Cluster, shape: str, nodes: int
) -> Callable[[str, int], Awaitable[object]]:
    """The work of a shape by the prefix and the number of its pods."""
    if shape == "steady":
        await shapes.arrive(made, shapes.template_pods("held", nodes * DEVICES // 2), "")
        return lambda _prefix, pods: shapes.churn(made, pods, "")
    if shape == "fill":
        return lambda prefix, pods: shapes.arrive(made, shapes.template_pods(prefix, pods), "")

    async def share(prefix: str, pods: int) -> None:
        await cluster.submit_all(made.runtime, [cluster.claim(prefix)])
        names = [f"{prefix}-{number:05}" for number in range(pods)]
        sharing = [cluster.pod(name, claim=prefix, cpu="10m") for name in names]
        await shapes.arrive(made, sharing, "")

    return share


async def _statistics(connection: asyncpg.Connection) -> Counter[str]:
    """The statistics of the database, when its processes have reported them."""
    await anyio.sleep(FLUSH_SECONDS)
    row = await connection.fetchrow(_DATABASE)
    assert row is not None, "every database has statistics"
    return Counter({name: int(value or 0) for name, value in row.items()})


def main(arguments: Sequence[str] = ()) -> None:
    """Count the shapes that are named, or all."""
    parser = argparse.ArgumentParser(prog="bench.counts", description=__doc__)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--pods", type=int, default=200, help="pods that are counted")
    parser.add_argument("--nodes", type=int, default=60, help=f"nodes of {DEVICES} devices")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.shapes if name not in SHAPES]:
        parser.error(f"no shape {unknown[0]!r}; there are {', '.join(SHAPES)}")
    if not 0 < options.pods <= min(shapes.SHARERS, options.nodes * DEVICES // 2):
        parser.error(f"pods: 1 to {shapes.SHARERS}, and at most half of the devices")
    garbage_collection.expect_large_heap()
    for shape in options.shapes or SHAPES:
        anyio.run(
            *(measure, shape, options.pods, options.nodes), backend_options={"use_uvloop": True}
        )


if __name__ == "__main__":
    main(sys.argv[1:])

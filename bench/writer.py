"""The group writer: commands decided, sealed, committed and folded, by concurrent callers."""

import time
from contextlib import suppress

import anyio

from app.bootstrap import garbage_collection
from app.bootstrap.histories import open_histories
from app.bootstrap.process_settings import settings
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import open_store
from app.domain.errors import AlreadyExists
from app.domain.log import Actor, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject
from app.service.runtime import HistoryRuntime
from bench.folder import temporary_data

SECONDS = 4.0
CALLERS = (1, 8, 32, 128)
BENCH = Actor(user="bench")


def claim(name: str) -> CreateObject:
    """A ResourceClaim of about 1.5 KB."""
    expression = 'device.driver == "gpu.example.com" && ' + " && ".join(
        f'device.attributes["gpu.example.com"].a{number} == "{number}"' for number in range(16)
    )
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "bench"}},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "selectors": [{"cel": {"expression": expression}}],
                        },
                    }
                ]
            }
        },
    }
    key = ObjectKey("resource.k8s.io", "resourceclaims", "default", name)
    return CreateObject(key=key, version="v1", tree=tree)


async def make_namespace(runtime: HistoryRuntime) -> None:
    """The namespace of everything, unless the history came with it."""
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    key = ObjectKey("", "namespaces", "", "default")
    with suppress(AlreadyExists):
        await runtime.submit(CreateObject(key=key, version="v1", tree=tree), actor=BENCH)


async def measure() -> None:
    """Creates per second at each number of callers, durable (fsync on)."""
    garbage_collection.expect_large_heap()
    rules_for(Profile())
    with temporary_data() as folder:
        chosen = settings(data=folder)
        async with open_store(chosen, migrate=True) as store, open_histories(store, chosen) as all_:
            runtime = await all_.create("bench")
            await make_namespace(runtime)
            print("callers  creates/s  p50 ms  p99 ms")
            for callers in CALLERS:
                times: list[float] = []
                end = time.perf_counter() + SECONDS

                async def call(
                    number: int,
                    callers: int = callers,
                    end: float = end,
                    times: list[float] = times,
                ) -> None:
                    count = 0
                    while time.perf_counter() < end:
                        started = time.perf_counter()
                        name = f"c-{callers}-{number}-{count}"
                        await runtime.submit(claim(name), actor=BENCH)
                        times.append(time.perf_counter() - started)
                        count += 1

                async with anyio.create_task_group() as tasks:
                    for number in range(callers):
                        tasks.start_soon(call, number)
                times.sort()
                print(
                    f"{callers:7}  {len(times) / SECONDS:9.0f}  {times[len(times) // 2] * 1e3:6.2f}"
                    f"  {times[len(times) * 99 // 100] * 1e3:6.2f}"
                )


def main() -> None:
    """Run the measurement."""
    anyio.run(measure, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()

"""The run that the fuzzers of drawn worlds have in common: judges worlds, counts differences."""

from collections.abc import Awaitable, Callable, Iterable

import anyio

Judge = Callable[[int], Iterable[str]]
"""Gives the differences between an answer about the world of a seed and what is true of it."""

AsyncJudge = Callable[[int], Awaitable[Iterable[str]]]


def judge_worlds(cases: int, seed: int, *judges: Judge) -> None:
    """Has each judge see the worlds of so many seeds; raises the differences."""
    wrong = [
        f"seed {world}: {difference}"
        for world in range(seed, seed + cases)
        for judge in judges
        for difference in judge(world)
    ]
    print(f"{cases} worlds judged, {len(wrong)} differences")
    if wrong:
        raise AssertionError("\n".join(wrong))


def awaited(judge: AsyncJudge) -> Judge:
    """A judge that runs an asynchronous one."""
    return lambda world: anyio.run(judge, world)

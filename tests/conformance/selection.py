"""Which altered recordings are judged in a normal run of the tests: the one place that decides.

Each alteration is judged on the recording that takes the least work of those that it fits, each
fourth one on another. The busy recordings have the alterations that fit no other one, so that each
recording has some. `make draws` judges each alteration on each recording.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests import draws

Alter = Callable[..., Any]

BY_WORK = (
    "j-api-versions",
    "c-multihost-tpu",
    "a-quickstart",
    "e-taints",
    "b-mig-partitions",
    "e-taints-rules-ignored",
    "i-soak-short",
)
"""The recordings, in the order of the work that a verdict of decide about them takes."""


BUSY = BY_WORK[BY_WORK.index("e-taints") :]
"""Recordings about which a verdict of decide takes many runs."""


def by_work(names: Iterable[str]) -> list[str]:
    """The recordings of a run for an alteration that fits these, in the order of their work."""
    ordered = sorted(names, key=BY_WORK.index)
    if draws.WHOLE:
        return ordered
    return [name for name in ordered if name not in BUSY] or ordered[:1]


def rows(
    alterations: Iterable[Alter],
    names: Sequence[str],
    absent: Mapping[Alter, Sequence[str]] | None = None,
    further: Mapping[Alter, Sequence[str]] | None = None,
) -> list[tuple[str, Alter]]:
    """The rows (recording, alteration) of a run.

    `absent` has recordings that hold nothing to alter, `further` those that only some alterations
    are tried on.
    """
    groups = []
    for alter in alterations:
        fit = {*names, *(further or {}).get(alter, ())} - {*(absent or {}).get(alter, ())}
        groups.append([(name, alter) for name in by_work(fit)])
    return draws.first_of_each(groups)

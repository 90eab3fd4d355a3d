"""The place where two sides' reasons for a pod diverge, and possible causes, as typed values."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.log import ObjectKey


@dataclass(frozen=True, slots=True)
class ByPod:
    """The cause is a pod with another place or time on one side.

    `uid` is its uid on that side, or the name that both sides have for it.
    """

    side: str
    uid: str


@dataclass(frozen=True, slots=True)
class ByObject:
    """The cause is an object that differs, or is missing on one side."""

    key: ObjectKey


@dataclass(frozen=True, slots=True)
class BySettings:
    """The cause is a different release, gate or quirk."""


@dataclass(frozen=True, slots=True)
class ByOrder:
    """The cause is the node at which the scheduler began, because its earlier attempts differ."""


Cause: TypeAlias = ByPod | ByObject | BySettings | ByOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The place where the reasons diverge, the answers of both sides there, and the causes.

    `open_on` is the side that could have the node or device there, if only one of them could.
    """

    node: str = ""
    device: str = ""
    a: str = ""
    b: str = ""
    causes: tuple[Cause, ...] = ()
    open_on: str = ""


def by_pods(left: Set[str], right: Set[str]) -> Iterator[Cause]:
    """The pods that are on one side only."""
    yield from by_pods_of("b", left, right)
    yield from by_pods_of("a", left, right)


def by_pods_of(side: str, left: Set[str], right: Set[str]) -> Iterator[Cause]:
    """The pods that are on this side only."""
    yield from (ByPod(side, uid) for uid in sorted(left - right if side == "a" else right - left))

"""Recordings altered by machine, a ninth time: logs that lack whole sorts of lines, or a part.

Each alteration is as in `crossed_tampering`.
"""

import random

from tests.conformance.crossed_tampering import Told
from tests.conformance.subtle_tampering import NothingToAlter
from tests.conformance.tampering import Lines, allocations, results_of

CONTROLLERS = (
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:device-taint-eviction-controller",
)
ACCOUNTS = (CONTROLLERS[1], "system:serviceaccount:kube-system:resource-claim-controller", "kcm")
"""Accounts that controllers may share: one of their own, one of another controller, a new one."""


def lose_deletions(lines: Lines, draw: random.Random) -> Told:
    """A policy that records no request with the verb delete, nor one for a collection."""
    kept = [line for line in lines if not line["verb"].startswith("delete")]
    if len(kept) == len(lines):
        raise NothingToAlter
    count = len(lines) - len(kept)
    lines[:] = kept
    return Told((), f"{count} deletions are missing")


def lose_the_middle_third(lines: Lines, draw: random.Random) -> Told:
    """The middle third of the lines is lost."""
    third = len(lines) // 3
    del lines[third : 2 * third]
    return Told((), f"lines {third} to {2 * third} are missing")


def give_an_unknown_device_early(lines: Lines, draw: random.Random) -> Told:
    """The last claim that is allocated in the first third has a device that is in no slice."""
    early = len(allocations(lines[: len(lines) // 3]))
    if not early:
        raise NothingToAlter
    picked = allocations(lines)[early - 1]
    for tree in picked.trees:
        results_of(tree)[0]["device"] = "no-such-device"
    return Told((picked.claim[1],), f"{picked.claim} has a device that is in no slice")


def lose_the_last_third(lines: Lines, draw: random.Random) -> Told:
    """The log ends after two thirds of the lines."""
    end = len(lines) * 2 // 3
    del lines[end:]
    return Told((), f"the log ends after line {end}")


def act_under_one_account(lines: Lines, account: str) -> Told:
    """The garbage collector and the eviction controller have the account."""
    count = 0
    for line in lines:
        if line["user"]["username"] in CONTROLLERS:
            line["user"] = {"username": account, "groups": ["system:authenticated"]}
            count += 1
    if not count:
        raise NothingToAlter
    return Told((), f"{count} requests are by {account}")

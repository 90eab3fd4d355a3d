"""Runs of drawn clusters, and what redra says of their logs."""

import json

from tests.command_line import redra
from tests.plane.faults import planted
from tests.plane.world import World

KINDS = {
    "plain": {"rules": False, "trouble": False},
    "trouble": {},
    "binding": {"binding": True},
    "servers": {"servers": 2},
    "restarts": {"restarts": ("scheduler", "manager")},
    "late": {"lag": 120},
    "slow": {"think": 8, "think_max": 60},
    "skew": {"servers": 2, "skew": 20_000},
}
"""The options of a world by its kind."""


def run(kind, seed, folder, *, seconds=90):
    """The audit logs of a world."""
    return World(f"{kind}-{seed}", **KINDS[kind]).run(folder, seconds=seconds)


def run_with_fault(name, number, kind, seed, folder):
    """The audit logs of a world with a fault, and the names of its objects; empty for none."""
    with planted(name, number) as once:
        paths = run(kind, seed, folder)
    return paths, once.names


def judged(paths, mode):
    """The exit code and the report of a replay."""
    options = ("--mode", mode, "--profile", "1.36", "--gate", "DRADeviceTaintRules=true")
    code, out, err = redra("replay", *map(str, paths), *options, "-o", "json")
    return code, json.loads(out) if out.startswith("{") else {"error": err or out}

"""Recordings altered by machine, with verdicts fixed before the run from the specification alone.

Nothing here reads redra's code or another test's expectation: it judges by the command line.
"""

from collections.abc import Mapping
from importlib import import_module

from tests.adversary.catalogue import ALTERATIONS, Alteration

PARTS = (
    "devices",
    "configurations",
    "evictions",
    "writes",
    "agreeing",
    "refusals",
    "harmless",
    "additions",
    "lossy",
    "both",
    "endings",
    "causes",
    "clocks",
    "unseen",
    "disguised",
    "renamed",
    "renewed",
    "joined",
    "edges",
    "unlucky",
    "moments",
    "mixed",
    "shapes",
)


def all_alterations() -> Mapping[str, Alteration]:
    """Every alteration by name."""
    for part in PARTS:
        import_module(f"tests.adversary.{part}")
    return ALTERATIONS

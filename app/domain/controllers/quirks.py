"""Upstream behaviour that looks like a defect and affects outcomes, each behind a named switch.

The numbers with a `c` are those of controllers.md 9; the numbers with an `r` are redra's own, for
defects that only some releases have (controllers.md 10). `True` reproduces the behaviour. The
defaults are those of the reference, 1.36; `releases.quirks_of` returns those of each release. c8,
c9 and c22 are off in all releases because they have no single real outcome: they are races that the
specification leaves out. c7 is off because processes of redra may restart while the controllers of
the emulated cluster keep running; when it is on, each term of a controller counts as a restart.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerQuirks:
    """One switch per quirk that the controllers here can show or leave out."""

    c1: bool = True
    """A rule without a selector evicts nothing, though scheduling honours it everywhere."""
    c2: bool = True
    """A toleration with an empty effect does not tolerate eviction."""
    c3: bool = True
    """Claims for extended resources are not evicted."""
    c4: bool = True
    """Finished pods that still hold a reservation are evicted too."""
    c5: bool = True
    """A pod that terminates already counts as evicted."""
    c7: bool = False
    """A restart of the controller forgets how many pods each rule evicted."""
    c8: bool = False
    """A finished pod is reserved again by pod sync and released by claim sync, repeatedly."""
    c9: bool = False
    """The apply of new claim names drops earlier names of the same pod."""
    c12: bool = True
    """Unavailable claims are not remembered on nodes where the other claims do not fit either."""
    c15: bool = True
    """Deleting a claim wakes no waiting pod; up to 1.36, later releases look at it."""
    c16: bool = True
    """An allocator error of one node ends the attempt for all nodes."""
    c17: bool = True
    """Equal totals are decided by the order of a heap; off: drawn, the pod's uid being the seed."""
    c22: bool = False
    """A finished pod gets a second claim for a deleted one."""
    c24: bool = False
    """The released 1.36 schedulers do not see device taint rules; the profile acts on it."""
    r1: bool = False
    """The plug-in DynamicResources does not score nodes; before 1.35."""
    r2: bool = False
    """Scoring fails for pods with both allocated and unallocated claims; 1.35 and early 1.36."""
    r3: bool = False
    """A search that is given up rejects its node instead of ending the attempt; before 1.36."""
    r4: bool = True
    """Image volumes count for the score of images but not for its upper bound; up to 1.36."""
    r5: bool = False
    """Balance is scored as the pod leaves it, not by what the pod changes; before 1.36."""
    r6: bool = True
    """A spread constraint with an empty label selector counts no pods; in all releases here."""
    r7: bool = True
    """The condition of a pod that others are evicted for does not mention it; up to 1.36."""
    r8: bool = True
    """The condition of a pod without a node says that no claim was freed, too; up to 1.36."""


NO_SWITCH = {
    "c6": "the status of a rule has no periodic item; a repair would need writes upstream lacks",
    "c10": "nobody owns an allocation without reservations; a repair would be a new controller",
    "c11": "PreEnqueue writes nothing; `redra why` tells what the pod waits for",
    "c13": "the refusal is that of the API, which holds allocations immutable",
    "c14": "the limit is that of the API, which refuses the 257th entry",
    "c18": "the refusal is that of the API, which wants each uid once",
    "c19": "defaulting is the API's; a driver keeps the time by sending `timeAdded`",
    "c20": "the order of two looks at one pod decides; every order is a real one",
    "c21": "informers may compress a deletion and a creation; the log never does",
    "c23": "the refusal is that of the API; it is met with c8=on only",
}
"""The quirks without a switch, with the reason; c23 occurs when c8 is on."""

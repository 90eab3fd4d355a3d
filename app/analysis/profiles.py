"""Tables of each profile: quirks, gates and served versions of a release.

The reference page and `redra profiles` print these rows, which come from the code that implements
them.
"""

from dataclasses import dataclass, fields

from app.domain.allocation import Quirks
from app.domain.allocation.quirks import MARKS
from app.domain.controllers import releases
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind

WORDS = {
    "c1": "A rule without a selector keeps new pods away everywhere and evicts nobody",
    "c2": "A toleration with an empty effect lets a pod onto the device, and it is evicted at once",
    "c3": "Pods whose devices came through an extended resource are not evicted",
    "c4": "A finished pod that still holds a reservation is deleted too",
    "c5": "A pod that its owner has deleted counts as evicted",
    "c7": "A restart forgets how many pods each rule has evicted",
    "c8": "A finished pod of a shared claim is reserved and released again, repeatedly",
    "c9": "The apply of a new claim's name drops the pod's other names for a moment",
    "c12": "A misplaced claim is forgotten when the pod's other claims do not fit either",
    "c15": "Deleting a claim wakes no pod",
    "c16": "An error of the allocator on one node ends the attempt for all",
    "c17": "Of equally good nodes always the same one is taken",
    "c22": "A finished pod gets a second claim, which is deleted at once",
    "c24": "The schedulers of 1.36.0 to 1.36.2 do not see rules",
    "r1": "DynamicResources does not score nodes",
    "r2": "Scoring fails for a pod with allocated and unallocated claims",
    "r3": "A search that takes too long rejects its node instead of ending the attempt",
    "r4": "Image volumes count for the score of images but not for its upper bound",
    "r5": "NodeResourcesBalancedAllocation scores the balance that a pod leaves, not its change",
    "r6": "A topology spread constraint with an empty selector ({}) counts no pods",
    "r7": "The message of a pod for which others are evicted has no word about it",
    "r8": "The message of a pod without a node also says what was not done for its claims",
    "q1": "Counters stay booked when a device is refused for a taint or a constraint",
    "q2": "A shared device that is tried in vain does not give its counters back",
    "q3": "Counters are booked by the name of the pool, whatever its driver",
    "q4": "One counter below zero refuses every device of its pool that draws on counters",
    "q5": "Backtracking does not widen the common values of a matchAttribute again",
    "q6": "distinctAttribute remembers one value per request, the last",
    "q7": "A shared device without capacity that was tried in vain is no longer booked",
    "q8": "A device that fails the last check of its capacity stays booked",
    "q9": "A device taken with admin access is in use for later requests of the same pod",
    "q10": "A constraint that refuses a device in mode All ends the attempt for all nodes",
    "q11": "An alternative in mode All raises its errors even if it is never reached",
    "q12": "A newer generation of a pool goes unnoticed where the old one is complete",
    "q13": "A pool of which a newer generation exists elsewhere disappears",
    "q14": "A DeviceTaintRule without a selector taints every device",
    "q15": "One device with binding conditions moves its pool behind all pools without",
    "q16": "A selector that fails on a device ends the attempt though it could not be taken",
    "q17": "A share without capacity books its counters although an earlier share holds them",
    "q18": "Alternatives that failed leave traces (Q1, Q2, Q5 to Q8) for later ones",
    "q20": "Looking at a device may enlarge the capacity that is asked for",
}
"""A one-line description of each quirk; docs/reference/behaviours.md has the details."""

WITHOUT_SWITCH = {
    "c6": "The status of a rule can remain outdated",
    "c10": "An allocation without reservations stays until somebody uses or deletes the claim",
    "c11": "A pod whose claim does not exist waits without any message",
    "c13": "A claim that was allocated without a time keeps its second pod away for ever",
    "c14": "The 257th consumer of a claim fails at the write, endlessly",
    "c18": "A pod that names one claim twice is never bound",
    "c19": "A slice written again without timeAdded starts tolerated times anew",
    "c20": 'The Event "Cancelling deletion" comes after the eviction',
    "c21": "A rule deleted and made again, seen as one update, has no immediate status",
    "c23": "The reservation for a finished pod of a claim that is being deleted is refused again "
    "and again (only with C8)",
    "q19": "If two attributes x and DRIVER/x exist, upstream's selectors see either of them; here "
    "they see the second",
}
"""The behaviours with a number that no switch changes, in the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFacts:
    """One profile. `release` is the minor release whose gates and versions it has.

    `quirks` and `gates` have the default of every known name. `versions` has the served versions,
    preferred first, with these gates, of each kind whose serving differs between releases or
    depends on a gate; empty if the kind is not served.
    """

    name: str
    release: str
    is_default: bool
    quirks: dict[str, bool]
    gates: dict[str, bool]
    versions: dict[str, tuple[str, ...]]


def names() -> tuple[str, ...]:
    """All profiles, oldest first; patch releases come after their minor release."""
    known = {*profiles.VERSIONS, *profiles.PATCHES}
    return tuple(sorted(known, key=lambda name: [int(part) for part in name.split(".")]))


def described(mark: str) -> str:
    """A defect with its number and description; a mark that switches several numbers names each.

    Example: `Q6 (distinctAttribute remembers one value per request, the last)`.
    """
    numbers = MARKS.get(mark, (mark,))
    return " or ".join(f"{each.upper()} ({_inside(WORDS[each])})" for each in numbers)


def setting_described(change: str) -> str:
    """The effect and the origin of a changed quirk or rule of a release; empty for other settings.

    `change` is a setting as comparisons name it, such as `quirk c15: on → off`.
    """
    kind, _, name = change.partition(":")[0].partition(" ")
    if kind == "rule" and name in profiles.RELEASE_RULES:
        minor, words = profiles.RELEASE_RULES[name]
        return f"Kubernetes has it since 1.{minor}: {words}"
    if kind != "quirk" or name not in WORDS:
        return ""
    having = {each for each in names() if _quirks(Profile(version=each))[name]}
    if not having:
        whose = "off in every profile"
    elif len(having) == len(names()):
        whose = "in every profile"
    else:
        shown = [each for each in names() if each in having]
        whose = (
            f"in {', '.join(each for each in shown if profiles.PATCHES.get(each) not in having)}"
        )
    return f"a behaviour of upstream, {whose}: {_inside(WORDS[name])}"


def _inside(sentence: str) -> str:
    """The sentence as a part of another; names of kinds and plug-ins keep their capitals."""
    first = sentence.partition(" ")[0]
    is_name = first[1:].lower() != first[1:]
    return sentence if is_name else sentence[0].lower() + sentence[1:]


def facts_of(name: str) -> ProfileFacts:
    """The tables of a profile. Raises InputError, naming the existing profiles."""
    chosen = Profile(version=name)
    return ProfileFacts(
        name=name,
        release=chosen.version,
        is_default=name == profiles.DEFAULT_VERSION,
        quirks=_quirks(chosen),
        gates={gate: chosen.enabled(gate) for gate in profiles.GATES},
        versions={
            kind.kind: tuple(version for _, version in registry.served_versions(kind, chosen))
            for kind in _varying_kinds()
        },
    )


def _quirks(chosen: Profile) -> dict[str, bool]:
    controllers = releases.quirks_of(chosen)
    allocator = releases.allocator_quirks_of(chosen)
    quirks = {one.name: bool(getattr(controllers, one.name)) for one in fields(ControllerQuirks)}
    return quirks | {one.name: bool(getattr(allocator, one.name)) for one in fields(Quirks)}


def _varying_kinds() -> list[Kind]:
    releases_only = [Profile(version=version) for version in profiles.VERSIONS]
    every_gate = Profile(gates=dict.fromkeys(profiles.GATES.keys() - profiles.FIXED.keys(), True))
    kinds = sorted(registry.served_kinds(every_gate), key=lambda kind: kind.kind)
    return [
        kind
        for kind in kinds
        if kind.gate
        or len({registry.served_versions(kind, chosen) for chosen in releases_only}) > 1
    ]

"""The taints that evicted pods: each with its rule or driver and the number of its pods."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis.chronicle import Chronicle
from app.analysis.explain.reasons import listed
from app.analysis.verify.invariants.stock import Evictor
from app.domain.controllers.eviction.reconciler import CONDITION_REASON
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.devices.model import Taint
from app.domain.log import ObjectKey, Revision
from app.domain.values import counts

LINES_MAX = 5
"""The number of taints that a finding names; the others are counted."""


def lines(
    chronicle: Chronicle, text: str, evictions: Sequence[tuple[ObjectKey, Revision]]
) -> tuple[str, ...]:
    """A line for each taint that evicted pods, those of most pods first.

    `text` is the condition of the pods; nothing is said of pods that were evicted for another
    reason. A pod with several taints counts for each of them.
    """
    if not text.startswith(CONDITION_REASON):
        return ()
    alike: dict[tuple[Evictor, ...], set[ObjectKey]] = {}
    for pod, revision in evictions:
        alike.setdefault(chronicle.evictors(revision), set()).add(pod)
    unknown = alike.pop((), set())
    pods: dict[Evictor, set[ObjectKey]] = {}
    slices: dict[Evictor, set[str]] = {}
    for evictors, evicted in alike.items():
        for each in evictors:
            # Devices in several slices, tainted by several writes, have one taint of a driver.
            taint = each._replace(slice="", written=Revision(0))
            pods.setdefault(taint, set()).update(evicted)
            slices.setdefault(taint, set()).update({each.slice} - {""})
    ranked = sorted(pods, key=lambda each: (-len(pods[each]), each))
    named = [
        f"{_count(pods[one])} by {_source(one, sorted(slices.get(one, ())))}" for one in ranked
    ]
    return tuple(_bounded(named, unknown))


def _bounded(named: Sequence[str], unknown: set[ObjectKey]) -> Iterator[str]:
    yield from named[:LINES_MAX]
    if len(named) > LINES_MAX:
        yield f"and by {counts.of(len(named) - LINES_MAX, 'more taint')}"
    if unknown:
        yield f"{_count(unknown)} by a taint that is not known"


def _count(pods: set[ObjectKey]) -> str:
    return counts.of(len(pods), "pod")


def _source(evictor: Evictor, slices: Iterable[str]) -> str:
    """The taint with who set it: `rule maintenance, taint example.com/unhealthy:NoExecute`."""
    taint = Taint(key=evictor.key, value=evictor.value, effect=NO_EXECUTE).text
    names = [*slices]
    if evictor.rule:
        source = f"rule {evictor.rule}"
    else:
        where = f" in {counts.plural(len(names), 'slice')} {listed(names, len(names))}"
        source = f"driver {evictor.driver}{where if names else ''}"
    return f"{source}, taint {taint}{', which had just ended' if evictor.is_over else ''}"

"""Deleted pods that explain allocations of several nodes: each had devices of one node alone.

Devices a, b and c are on `node`, d and e on `elsewhere`, in this order. Pods that are deleted ask
for one device each; other pods get devices that are not the first ones.
"""

import itertools
import random

import pytest

from app.analysis.verify import excuses
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import ComparisonCounts, ComparisonResult
from app.analysis.verify.excuses import Excuse
from app.analysis.verify.parts import joined
from app.analysis.verify.reallocate import AllocationChecker
from app.analysis.views import LiveViews
from app.bootstrap.deciders import deciders_of
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.log.pages import Page
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, selector, slice_, user
from tests.unit.analysis.verify.test_last_lost import ANY
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class

HERE, ELSEWHERE = ("node", "p", "b"), ("elsewhere", "q", "e")
HERE_AGAIN = ("node", "p", "c")


def story_of(gone: int, given: tuple[tuple[str, str, str], ...]) -> Story:
    """So many pods wait and are deleted; others get a device of a node and pool, one by one."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.put(key_of("nodes", "elsewhere"), {})
    for pool, devices, node in (("p", "abc", "node"), ("q", "de", "elsewhere")):
        published = slice_(pool, *(of_size("small", name) for name in devices))
        del published["spec"]["allNodes"]
        published["spec"]["nodeName"] = node
        story.put(key_of("resourceslices", pool), published)
    for number in range(gone):
        story.claim(f"z{number}", ANY)
        story.pod(f"gone-{number}", f"z{number}")
    for number, (node, _, _) in enumerate(given):
        story.claim(f"y{number}", ANY)
        story.pod(f"of-y{number}", f"y{number}", node=node, after=0)
    for number in range(gone):
        story.remove(key_of("pods", f"gone-{number}"))
        story.remove(key_of("resourceclaims", f"z{number}"))
    for number, (node, pool, device) in enumerate(given):
        tree, written = story.change(key_of("resourceclaims", f"y{number}"))
        tree["status"] = {
            "allocation": {
                "devices": {"results": [result(pool, device)]},
                "nodeSelector": selector(node=node),
            },
            "reservedFor": [user(f"of-y{number}", story.uid(f"of-y{number}"))],
        }
        written()
    return story


def compared(story: Story, parts: int) -> ComparisonCounts:
    """The comparisons of a story whose last events are verified in a part of their own each."""
    deciders = deciders_of(HistoryInfo(id=HistoryId(1), name="h"))
    index = AllocationIndex()
    for event, split in Page(story.events).splits:
        index.add(event, split)
    ends = [len(story.events) - left for left in reversed(range(parts))]
    counts = []
    for begin, end in itertools.pairwise([0, *ends]):
        views = LiveViews(deciders.rules.profile)
        checker = AllocationChecker(
            index.after(Revision(story.events[begin].revision - 1)),
            views,
            compiler=deciders.compiler,
            quirks=deciders.quirks,
            schemas=deciders.rules.schemas,
        )
        for number, event in enumerate(story.events[:end]):
            if number < begin:
                checker.follow(event)
            else:
                checker.before(event, is_ours=False)
            views.fold(event)
        counts.append(checker.result())
    return joined(counts)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize(
    ("gone", "given", "explained"),
    [
        (1, (HERE,), 1),
        (1, (ELSEWHERE,), 1),
        (1, (HERE, ELSEWHERE), 1),
        (1, (ELSEWHERE, HERE), 1),
        (2, (HERE, ELSEWHERE), 2),
        (1, (HERE, HERE_AGAIN), 2),
        (2, (HERE, HERE_AGAIN, ELSEWHERE), 3),
        (1, (HERE, HERE_AGAIN, ELSEWHERE), 2),
    ],
)
def test_deleted_pod_explains_allocations_of_one_node(gone, given, explained, parts) -> None:
    counts = compared(story_of(gone, given), parts)
    assert counts.counts.get(ComparisonResult.CONCURRENT, 0) == explained
    assert counts.counts.get(ComparisonResult.NOT_COMPARABLE, 0) == len(given) - explained
    assert counts.agrees
    assert counts.is_complete == (explained == len(given))
    expected = {excuses.REASON} if explained < len(given) else set()
    assert set(counts.reasons) == expected
    assert sum(counts.authors.values()) == explained


def tried_all(given: list[Excuse]) -> list[Excuse]:
    """The judge: each in turn is kept if some choice of a node for every pod suits those kept."""
    pods = sorted({pod for each in given for some in each.alternatives for pod in some})
    names = sorted({each.node for each in given})
    ways = [
        dict(zip(pods, chosen, strict=True))
        for chosen in itertools.product(names, repeat=len(pods))
    ]
    refused = []
    for each in given:
        suited = [
            way
            for way in ways
            if any(all(way[pod] == each.node for pod in some) for some in each.alternatives)
        ]
        if suited:
            ways = suited
        else:
            refused.append(each)
    return refused


def test_each_choice_of_nodes_is_found() -> None:
    chance = random.Random(5)
    seen = set()
    for _ in range(400):
        pods = "uvwxy"[: chance.randint(1, 5)]
        given = [
            Excuse(
                author=str(number),
                node=chance.choice("123"),
                alternatives=tuple(
                    frozenset(chance.sample(pods, chance.randint(1, min(2, len(pods)))))
                    for _ in range(chance.randint(1, 3))
                ),
            )
            for number in range(chance.randint(1, 7))
        ]
        expected = tried_all(given)
        assert excuses.unexcused(given) == expected, given
        seen.add(len(expected))
    assert {0, 1, 2, 3} <= seen


def test_pods_that_are_needed_are_those_without_which_there_is_no_agreement() -> None:
    """An attempt assumes the first pods that are left until it agrees."""
    chance = random.Random(6)
    for _ in range(200):
        pods = "uvwx"
        enough = [frozenset(chance.sample(pods, chance.randint(1, 2))) for _ in range(2)]

        def attempt(
            without: frozenset[str], enough: list[frozenset[str]] = enough, pods: str = pods
        ) -> tuple[bool, frozenset[str]]:
            assumed: set[str] = set()
            for pod in pods:
                if any(one <= assumed for one in enough):
                    break
                if pod not in without:
                    assumed.add(pod)
            return any(one <= assumed for one in enough), frozenset(assumed)

        needed = excuses.alternatives(attempt)
        for left in itertools.chain.from_iterable(
            itertools.combinations(pods, count) for count in range(5)
        ):
            is_enough = any(one <= set(left) for one in enough)
            assert any(one <= set(left) for one in needed) == is_enough


def test_agreement_without_any_pod_needs_none() -> None:
    tries = [(True, frozenset("u")), (True, frozenset[str]())]
    assert excuses.alternatives(lambda without: tries[len(without)]) == ()


def test_too_many_pods_to_try_explain_everything() -> None:
    pods = [str(number) for number in range(excuses.TRIED_MAX + 1)]
    assert (
        excuses.alternatives(
            lambda without: (
                (True, frozenset(next([pod] for pod in pods if pod not in without)))
                if len(without) < len(pods)
                else (False, frozenset())
            )
        )
        == ()
    )


def test_allocations_count_as_explained_where_too_many_choices_would_have_to_be_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of pods a and b, the first excuse takes a; the third needs it for another node."""
    either = (frozenset({"a"}), frozenset({"b"}))
    chain = [
        Excuse(author="s", node="n", alternatives=either),
        Excuse(author="s", node="m", alternatives=(frozenset({"a"}),)),
        Excuse(author="s", node="o", alternatives=either),
    ]
    assert excuses.unexcused(chain) == [chain[2]]
    monkeypatch.setattr(excuses, "STEPS_MAX", 1)
    assert excuses.unexcused(chain) == []

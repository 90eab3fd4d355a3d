"""Where the reasons of two sides diverge, and why, from answers and facts written by hand.

Each row is looked at twice: as it is, and with its sides exchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from app.analysis.diff import divergences, testimony
from app.analysis.diff.divergences import ON_ITS_WAY, DecidedPlacement
from app.analysis.diff.partings import ByObject, ByOrder, ByPod, BySettings, Cause, Parting
from app.analysis.diff.testimony import ClaimFacts, DeviceFacts, NodeFacts, PoolFacts
from app.analysis.explain.node_reasons import NodeReason
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.explanation import (
    NOT_REACHED,
    ClaimReason,
    DeviceReason,
    Explanation,
    RequestReason,
)
from app.domain.log import ObjectKey, Revision

Answers: TypeAlias = testimony.Testimony

DRA = "resource.k8s.io"
NODE = ByObject(ObjectKey("", "nodes", "", "n"))
OTHER_NODE = ByObject(ObjectKey("", "nodes", "", "m"))
CLASS = ByObject(ObjectKey(DRA, "deviceclasses", "", "gpu"))
RULE = ByObject(ObjectKey(DRA, "devicetaintrules", "", "rule"))
TEMPLATE = ByObject(ObjectKey(DRA, "resourceclaimtemplates", "ns", "template"))
CLAIM = ByObject(ObjectKey(DRA, "resourceclaims", "ns", "c"))
SETTINGS = BySettings()
TAINT, RULED = ("k=v:NoExecute", ""), ("k=v:NoExecute", "rule")
TURNED = {"a": "b", "b": "a", "": ""}


def slices(*names: str) -> tuple[Cause, ...]:
    return tuple(ByObject(ObjectKey(DRA, "resourceslices", "", name)) for name in names)


def device(
    *holders: str,
    content: str = "",
    taints: Sequence[tuple[str, str]] = (),
    rules: Sequence[tuple[str, str]] = (),
) -> DeviceFacts:
    return DeviceFacts(
        holders=frozenset(holders),
        slice="t",
        content=content.encode(),
        taints=frozenset(taints),
        rules=frozenset(rules),
    )


def pool(*holders: str) -> PoolFacts:
    return PoolFacts(
        generation=1, problem="", slices=frozenset({"s", "t"}), holders=frozenset(holders)
    )


def node(*pods: str, content: str = "node") -> NodeFacts:
    return NodeFacts(content=content.encode(), pods=frozenset(pods))


def answer(
    name: str, kind: CauseKind | None = None, *, chosen: bool = False, note: str = ""
) -> DeviceReason:
    cause = None if kind is None else causes.Cause(kind=kind, about="", text=f"is {kind}")
    return DeviceReason(device=f"d/p/{name}", cause=cause, chosen=chosen, note=note)


def asked(*devices: DeviceReason, text: str = "") -> NodeReason:
    request = RequestReason(
        request="r", wants="", needs=1, suitable=1, devices=devices, text="", groups=[]
    )
    explained = Explanation(
        node="n", outcome="", text="", claims=(ClaimReason(claim="ns/c", requests=(request,)),)
    )
    return NodeReason(node="n", text=text, explained=explained)


def closed(text: str) -> NodeReason:
    return NodeReason(node="n", text=text)


def failing(text: str, *pools: str) -> NodeReason:
    unusable = tuple((pool, "incomplete") for pool in pools)
    explained = Explanation(node="n", outcome="error", text=text, claims=(), pools=unusable)
    return NodeReason(node="n", text=text, explained=explained)


def side(*devices: DeviceReason, **facts: Any) -> Answers:
    """The answers of a side; devices are those that the node n looked at."""
    given: dict[str, Any] = {"revision": Revision(9)}
    if devices:
        given["nodes"] = {"n": asked(*devices)}
        given["claims"] = {"gpu": ClaimFacts(key=CLAIM.key, is_there=True)}
    named = {
        "devices": {f"d/p/{name}": each for name, each in facts.pop("devices", {}).items()},
        "pools": {"d/p": facts.pop("pool", pool())},
    }
    return Answers(**given | named | facts)


def turned(parting: Parting) -> Parting:
    exchanged = tuple(
        ByPod(TURNED[cause.side], cause.uid) if isinstance(cause, ByPod) else cause
        for cause in parting.causes
    )
    return Parting(
        node=parting.node,
        device=parting.device,
        a=parting.b,
        b=parting.a,
        causes=exchanged,
        open_on=TURNED[parting.open_on],
    )


def check(
    part: Callable[[dict[str, Answers]], Parting],
    a: Answers,
    b: Answers,
    said: Parting,
) -> None:
    assert part({"a": a, "b": b}) == said
    other, wanted = part({"a": b, "b": a}), turned(said)
    # The pods of B are named before those of A, whichever side is which.
    assert sorted(other.causes, key=repr) == sorted(wanted.causes, key=repr)
    assert turned(other) == turned(
        Parting(
            node=wanted.node,
            device=wanted.device,
            a=wanted.a,
            b=wanted.b,
            causes=other.causes,
            open_on=wanted.open_on,
        )
    )


def always(_: Cause) -> bool:
    return True


def never(_: Cause) -> bool:
    return False


G0 = "d/p/g0"
HERE, GONE, EMPTY = {"n": node()}, dict[str, NodeFacts](), {"n": node(content="")}


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param(
            side(node_facts=HERE, devices={"g0": device()}),
            side(node_facts=GONE, devices={"g0": device(taints=[TAINT])}),
            Parting(node="n", a="the node is there", b="no such node", causes=(NODE,)),
            id="node gone",
        ),
        pytest.param(
            side(node_facts=EMPTY),
            side(node_facts=HERE),
            Parting(node="n", a="no such node", b="the node is there", causes=(NODE,)),
            id="node known by its pods only",
        ),
        pytest.param(
            side(node_facts=GONE, devices={"g0": device(rules=[RULED])}),
            side(node_facts=EMPTY, devices={"g0": device()}),
            Parting(
                device=G0,
                a="tainted k=v:NoExecute by rule rule",
                b="not tainted",
                causes=(RULE,),
            ),
            id="rule, without a node on either side",
        ),
        pytest.param(
            side(node_facts=HERE, devices={"g0": device(), "g1": device(taints=[TAINT])}),
            side(node_facts=HERE, devices={"g0": device(), "g1": device()}),
            Parting(
                device="d/p/g1",
                a="tainted k=v:NoExecute",
                b="not tainted",
                causes=slices("t", "s"),
            ),
            id="taint of the second device",
        ),
        pytest.param(
            side(node_facts=HERE, devices={"g0": device(taints=[TAINT], rules=[RULED])}),
            side(node_facts=HERE, devices={"g0": device(taints=[TAINT, RULED])}),
            Parting(node="n"),
            id="tainted alike",
        ),
        pytest.param(
            side(node_facts=HERE, devices={"g1": device(taints=[TAINT])}),
            side(node_facts=HERE),
            Parting(
                device="d/p/g1",
                a="tainted k=v:NoExecute",
                b="not published",
                causes=slices("t", "s"),
            ),
            id="device of one side, after one of neither",
        ),
        pytest.param(
            side(node_facts=HERE, devices={"g0": device()}),
            side(node_facts={"n": node(content="changed")}, devices={"g0": device()}),
            Parting(node="n", causes=(NODE,)),
            id="node changed",
        ),
        pytest.param(side(node_facts=GONE), side(node_facts=GONE), Parting(node="n"), id="nothing"),
    ],
)
def test_eviction_of_one_side_follows_from_its_node_or_its_taints(
    a: Answers, b: Answers, said: Parting
) -> None:
    check(lambda sides: divergences.of_eviction(sides, [G0, "d/p/g1"], "n"), a, b, said)


def test_rules_and_slices_of_a_tainted_device_are_named_in_the_order_of_the_rules() -> None:
    sides = {
        "a": side(node_facts=HERE, devices={"g0": device(taints=[TAINT], rules=[RULED])}),
        "b": side(node_facts=HERE, devices={"g0": device()}),
    }
    assert divergences.of_eviction(sides, [G0], "n") == Parting(
        device=G0,
        a="tainted k=v:NoExecute, k=v:NoExecute by rule rule",
        b="not tainted",
        causes=(*slices("t", "s"), RULE),
    )


FREE = device()
BOTH = {"devices": {"g0": FREE}}


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param(
            side(answer("g0", CauseKind.ALLOCATED), devices={"g0": device("p", "q")}),
            side(answer("g0", CauseKind.CONSTRAINT), devices={"g0": device("p")}),
            Parting(
                node="n",
                device=G0,
                a="is allocated",
                b="is constraint",
                causes=(ByPod("a", "q"), SETTINGS),
            ),
            id="held on one side",
        ),
        pytest.param(
            side(answer("g0", CauseKind.SELECTOR), classes={"gpu": b"1"}, **BOTH),
            side(answer("g0", CauseKind.TAINT), classes={"gpu": b"2"}, **BOTH),
            Parting(
                node="n", device=G0, a="is selector", b="is taint", causes=(CLASS, SETTINGS)
            ),
            id="another class",
        ),
        pytest.param(
            side(answer("g0", CauseKind.TAINT), devices={"g0": device(taints=[RULED])}),
            side(answer("g0", CauseKind.CONSTRAINT), **BOTH),
            Parting(
                node="n", device=G0, a="is taint", b="is constraint", causes=(RULE, SETTINGS)
            ),
            id="tainted on one side",
        ),
        pytest.param(
            side(answer("g0", CauseKind.COUNTERS), pool=pool("p", "q"), **BOTH),
            side(answer("g0", CauseKind.CONSTRAINT), pool=pool("p"), **BOTH),
            Parting(
                node="n",
                device=G0,
                a="is counters",
                b="is constraint",
                causes=(ByPod("a", "q"), *slices("t", "s"), ByPod("a", "p"), SETTINGS),
            ),
            id="counters used by one pod more",
        ),
        pytest.param(
            side(answer("g0", CauseKind.ALLOCATED), devices={"g0": device("p")}),
            side(nodes={"n": asked(text="a selector failed")}),
            Parting(
                node="n",
                device=G0,
                a="is allocated",
                b="a selector failed",
                causes=(*slices("t", "s"), ByPod("a", "p"), *slices("t", "s"), ByPod("a", "p"),
                        SETTINGS),
            ),
            id="devices of one side only",
        ),
        pytest.param(
            side(answer("g0", CauseKind.TAINT), **BOTH),
            side(answer("g0", CauseKind.TAINT), **BOTH),
            Parting(),
            id="the same",
        ),
        pytest.param(
            side(text="no node fits", node_names=frozenset("mn")),
            side(text="no node fits", node_names=frozenset("n")),
            Parting(a="no node fits", b="no node fits", causes=(OTHER_NODE,)),
            id="another node is counted",
        ),
        pytest.param(
            side(text="no claim", node_names=frozenset("mn")),
            side(text="no class", node_names=frozenset("n")),
            Parting(),
            id="nodes are not counted",
        ),
    ],
)  # fmt: skip
def test_message_of_another_reason_follows_from_what_excludes_a_device(
    a: Answers, b: Answers, said: Parting
) -> None:
    check(lambda sides: divergences.of_message(sides, always), a, b, said)
    check(lambda sides: divergences.of_message(sides, never), a, b, Parting())


def claims(**facts: Any) -> dict[str, ClaimFacts]:
    return {"gpu": ClaimFacts(**{"key": CLAIM.key, "is_there": True} | facts)}


def placed(
    a: Answers,
    b: Answers,
    holds: Callable[[Cause], bool] = always,
    **more: Any,
) -> Callable[[dict[str, Answers]], Parting]:
    """`chosen` and `placements` are of A and B, and exchanged together with the testimonies."""
    chosen, placements = more.pop("chosen", {"a": "n"}), more.pop("placements", {})
    only, starts = more.pop("only", ""), more.pop("starts", (None, None))

    def part(sides: dict[str, Answers]) -> Parting:
        is_turned = sides["a"] is b and a is not b
        named = TURNED if is_turned else {"a": "a", "b": "b", "": ""}
        return divergences.of_placement(
            sides,
            more.get("nodes", ["n"]),
            starts[::-1] if is_turned else starts,
            {named[key]: value for key, value in chosen.items()},
            {named[key]: value for key, value in placements.items()},
            holds,
            only=named[only],
        )

    return part


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        pytest.param(
            side(text="waits for its claim", claims=claims(template="template")),
            side(text="names no claim"),
            Parting(a="waits for its claim", b="names no claim", causes=(TEMPLATE,)),
            id="claim of a template without a name on one side",
        ),
        pytest.param(
            side(text="waits for its claim", claims=claims(is_there=False, template="template")),
            side(claims=claims(template="template")),
            Parting(a="waits for its claim", b="nodes are asked", causes=(CLAIM, TEMPLATE)),
            id="claim that is not there",
        ),
        pytest.param(
            side(claims=claims(is_there=False)),
            side(claims=claims()),
            Parting(a="nodes are asked", b="nodes are asked", causes=(CLAIM,)),
            id="claim without a template that is not there",
        ),
        pytest.param(
            side(claims=claims(users=frozenset("qp"))),
            side(claims=claims()),
            Parting(
                a="claim c is allocated already",
                b="free to choose",
                causes=(ByPod("a", "p"), ByPod("a", "q")),
            ),
            id="claim that others use",
        ),
        pytest.param(
            side(claims=claims(content=b'{"a":1,"b":2}', template="template")),
            side(claims=claims(content=b'{"a":1,"b":3}', template="template")),
            Parting(a="b=2", b="b=3", causes=(TEMPLATE,)),
            id="another template",
        ),
        pytest.param(
            side(claims=claims(), classes={"gpu": b"", "x": b"1"}),
            side(claims=claims(), classes={"gpu": b"1", "x": b"2"}),
            Parting(a="nodes are asked", b="nodes are asked", causes=(CLASS,)),
            id="class of one side only",
        ),
        pytest.param(
            side(nodes={"n": closed("cordoned")}, node_facts={"n": node(content="cordoned")}),
            side(nodes={"n": closed("")}, node_facts=HERE),
            Parting(node="n", a="cordoned", b="would take it", causes=(NODE,)),
            id="cordoned node",
        ),
        pytest.param(
            side(nodes={"n": closed("full")}, node_facts={"n": node("p", "q")}),
            side(nodes={"n": asked(text="")}, node_facts={"n": node("q")}),
            Parting(node="n", a="full", b="would take it", causes=(ByPod("a", "p"),), open_on="b"),
            id="full node",
        ),
        pytest.param(
            side(nodes={"n": closed("another rule")}, node_facts=HERE),
            side(nodes={"n": closed("rule")}, node_facts=HERE),
            Parting(node="n", a="another rule", b="rule", causes=(SETTINGS,)),
            id="equal node",
        ),
        pytest.param(
            side(nodes={"m": closed("full")}, node_facts={"m": node()}),
            side(),
            Parting(node="m", a="full", b="not asked", causes=(OTHER_NODE,)),
            id="node of one side, after the chosen one",
        ),
        pytest.param(
            side(answer("g0", chosen=True), devices={"g0": FREE}),
            side(answer("g0", CauseKind.ALLOCATED), devices={"g0": device("p")}),
            Parting(
                node="n",
                device=G0,
                a="chosen",
                b="is allocated",
                causes=(ByPod("b", "p"), SETTINGS),
                open_on="a",
            ),
            id="held device",
        ),
        pytest.param(
            side(answer("g0"), devices={"g0": device(content="large")}),
            side(answer("g0", CauseKind.CAPACITY_MISSING), devices={"g0": device(content="small")}),
            Parting(
                node="n",
                device=G0,
                a="free",
                b="is capacity-missing",
                causes=(*slices("t", "s"), SETTINGS),
                open_on="a",
            ),
            id="changed device",
        ),
        pytest.param(
            side(
                answer("g0", note="the last choice"),
                answer("g1"),
                devices={"g0": FREE, "g1": FREE},
            ),
            side(answer("g1"), devices={"g1": FREE}),
            Parting(
                node="n",
                device=G0,
                a="the last choice",
                b="not published",
                causes=slices("t", "s"),
                open_on="a",
            ),
            id="device of one side only",
        ),
        pytest.param(
            side(
                answer("g0", CauseKind.SELECTOR),
                answer("g1"),
                devices={"g0": FREE, "g1": FREE},
                classes={"gpu": b"1"},
            ),
            side(
                answer("g0"),
                answer("g1"),
                devices={"g0": FREE, "g1": FREE},
                classes={"gpu": b"2"},
            ),
            Parting(
                node="n",
                device=G0,
                a="is selector",
                b="free",
                causes=(CLASS, SETTINGS),
                open_on="b",
            ),
            id="class that selects otherwise",
        ),
        pytest.param(
            side(
                answer("g0", note=f"{NOT_REACHED}: enough"),
                answer("g1"),
                devices={"g0": FREE, "g1": FREE},
            ),
            side(
                answer("g0", CauseKind.TAINT),
                answer("g1", CauseKind.TAINT),
                devices={"g0": device(taints=[RULED]), "g1": device(taints=[TAINT])},
            ),
            Parting(
                node="n",
                device="d/p/g1",
                a="free",
                b="is taint",
                causes=(*slices("t", "s"), SETTINGS),
                open_on="a",
            ),
            id="after a device that one side did not reach",
        ),
        pytest.param(
            side(nodes={"n": asked(answer("g0", CauseKind.SELECTOR), text="cannot allocate")}),
            side(nodes={"n": failing("pool d/p is being updated", "d/p")}),
            Parting(
                node="n",
                a="cannot allocate",
                b="pool d/p is being updated",
                causes=slices("s", "t"),
                open_on="a",
            ),
            id="pool that makes an error of a refusal",
        ),
        pytest.param(
            side(answer("g0", chosen=True), devices={"g0": FREE}),
            side(
                nodes={"n": asked(text="cannot allocate")},
                devices={"g0": FREE},
                pool=replace(pool(), problem="incomplete: 1 of 2 slices are there"),
            ),
            Parting(
                node="n",
                device=G0,
                a="chosen",
                b="incomplete: 1 of 2 slices are there",
                causes=slices("t", "s"),
                open_on="a",
            ),
            id="pool that cannot be used",
        ),
    ],
)
def test_placement_diverges_where_one_side_cannot_do_as_the_other(
    a: Answers, b: Answers, said: Parting
) -> None:
    check(placed(a, b), a, b, said)


def test_first_divergence_with_a_cause_that_holds_counts() -> None:
    a = side(
        answer("g0", chosen=True),
        nodes={"n": asked(answer("g0", chosen=True)), "m": closed("full")},
        devices={"g0": FREE},
        node_facts={"m": node("x")},
    )
    b = side(
        answer("g0", CauseKind.ALLOCATED),
        nodes={"n": asked(answer("g0", CauseKind.ALLOCATED)), "m": closed("")},
        devices={"g0": device("p")},
        node_facts={"m": node()},
    )
    held = Parting(
        node="n",
        device=G0,
        a="chosen",
        b="is allocated",
        causes=(ByPod("b", "p"), SETTINGS),
        open_on="a",
    )
    full = Parting(node="m", a="full", b="would take it", causes=(ByPod("a", "x"),))
    check(placed(a, b), a, b, held)
    check(placed(a, b, only="a"), a, b, held)
    # What the side alone could not have is no reason for its placement.
    check(placed(a, b, only="b"), a, b, full)
    check(placed(a, b, lambda cause: isinstance(cause, ByPod) and cause.uid == "x"), a, b, full)
    check(placed(a, b, never), a, b, held)
    check(placed(a, b, never, only="a"), a, b, Parting())


ON_WAY = DecidedPlacement(node="n", devices=frozenset(), on_way={G0: "late"})
HELD = DecidedPlacement(node="n", devices=frozenset({G0}), on_way={})


@pytest.mark.parametrize(
    ("placements", "said"),
    [
        pytest.param(
            {"a": ON_WAY, "b": HELD},
            Parting(
                node="n",
                device=G0,
                a=ON_ITS_WAY,
                b="chosen",
                causes=(ByPod("a", "late"), SETTINGS),
                open_on="b",
            ),
            id="one side chose it, but another pod had it already",
        ),
        pytest.param({"a": HELD, "b": HELD}, None, id="both have it"),
        pytest.param(
            {"a": DecidedPlacement(node="m", devices=frozenset(), on_way={G0: "late"}), "b": HELD},
            None,
            id="placed on another node",
        ),
    ],
)
def test_device_that_a_pod_on_its_way_had_was_not_to_be_had(
    placements: dict[str, DecidedPlacement], said: Parting | None
) -> None:
    a = side(answer("g0", chosen=True), devices={"g0": FREE})
    b = side(answer("g0", chosen=True), devices={"g0": device()})
    nothing = Parting(node="n", a="would take it", b="would take it")
    check(placed(a, b, placements=placements), a, b, said or nothing)


@pytest.mark.parametrize("taken", ["a", "b"])
def test_device_that_pods_on_their_way_have_on_both_sides_decides_nothing(taken: str) -> None:
    a = side(answer("g0", chosen=taken == "a"), devices={"g0": FREE})
    b = side(answer("g0", chosen=taken == "b"), devices={"g0": device()})
    both = {TURNED[taken]: DecidedPlacement(node="m", devices=frozenset(), on_way={G0: "p"})}
    placements = {taken: ON_WAY, **both}
    check(
        placed(a, b, placements=placements),
        a,
        b,
        Parting(node="n", a="would take it", b="would take it"),
    )


OPEN = {"nodes": {"n": asked(), "m": asked()}}


@pytest.mark.parametrize(
    ("a", "b", "more", "said"),
    [
        pytest.param(
            side(scores={"n": 9, "m": 5}, **OPEN),
            side(scores={"n": 3, "m": 5}, **OPEN),
            {},
            Parting(
                node="n", a="n scores 9, m scores 5", b="m scores 5, n scores 3", causes=(SETTINGS,)
            ),
            id="scores",
        ),
        pytest.param(
            side(scores={"n": 9, "m": 5}, node_facts={"m": node("p")}, **OPEN),
            side(scores={"n": 3, "m": 5}, node_facts={"m": node()}, **OPEN),
            {},
            Parting(
                node="n",
                a="n scores 9, m scores 5",
                b="m scores 5, n scores 3",
                causes=(ByPod("a", "p"),),
            ),
            id="scores that a pod of one side changes",
        ),
        pytest.param(
            side(scores={"n": 4, "m": 5}, **OPEN),
            side(scores={"n": 3, "m": 5}, **OPEN),
            {},
            Parting(node="n", a="would take it", b="would take it"),
            id="scores that do not explain a choice",
        ),
        pytest.param(
            side(scores={"n": 9}, **OPEN),
            side(scores={"n": 3, "m": 5}, **OPEN),
            {"starts": (0, 1)},
            Parting(node="n", a="would take it", b="would take it", causes=(ByOrder(),)),
            id="scores of one node only, and another beginning",
        ),
        pytest.param(
            side(**OPEN),
            side(**OPEN),
            {"starts": (1, None)},
            Parting(node="n", a="would take it", b="would take it"),
            id="a beginning that is not known",
        ),
        pytest.param(
            side(scores={"n": 5, "m": 5}, **OPEN),
            side(scores={"n": 5, "m": 5}, **OPEN),
            {"starts": (1, None)},
            Parting(node="n", a="would take it", b="would take it", causes=(ByOrder(),)),
            id="a beginning that a recording does not show, and a tie",
        ),
        pytest.param(
            side(scores={"n": 5, "m": 5}, **OPEN),
            side(scores={"n": 5, "m": 5}, **OPEN),
            {"starts": (None, None)},
            Parting(node="n", a="would take it", b="would take it"),
            id="two recordings and a tie",
        ),
        pytest.param(
            side(**OPEN),
            side(**OPEN),
            {"starts": (1, 1)},
            Parting(node="n", a="would take it", b="would take it"),
            id="the same beginning",
        ),
        pytest.param(
            side(node_facts={"n": node("q"), "m": node(content="changed")}, **OPEN),
            side(node_facts={"n": node("p"), "m": node()}, **OPEN),
            {"starts": (0, 1)},
            Parting(
                node="n",
                a="would take it",
                b="would take it",
                causes=(ByPod("b", "p"), ByPod("a", "q"), OTHER_NODE),
            ),
            id="pods and a node around",
        ),
        pytest.param(
            side(node_facts={"n": node("q")}, **OPEN),
            side(node_facts={}, **OPEN),
            {},
            Parting(node="n", a="would take it", b="would take it"),
            id="facts of one side only",
        ),
    ],
)
def test_equal_answers_leave_scores_what_is_around_or_the_beginning(
    a: Answers, b: Answers, more: dict[str, Any], said: Parting
) -> None:
    given = {"nodes": ["n", "m"], "chosen": {"a": "n", "b": "m"}}
    check(placed(a, b, **given, **more), a, b, said)

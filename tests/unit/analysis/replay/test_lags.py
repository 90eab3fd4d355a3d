"""When a request was made that had waited for the rate limit of its client."""

from itertools import combinations
from random import Random

import pytest

from app.analysis.replay import tolerances
from app.analysis.replay.attempts import PodTries, attempts_of, waits_of
from app.analysis.replay.lags import Refused, Waits, in_order
from app.domain.values.timestamps import SECOND, Instant
from tests.counting import counted


def sent(made, rate=tolerances.TABLE.writes_a_second, burst=tolerances.TABLE.writes_at_once):
    """When the limit lets requests through that were made at these instants."""
    every = SECOND // rate
    instants, last = [], 0
    for each in made:
        last = max(last, each - burst * every) + every
        instants.append(Instant(max(each, last)))
    return instants


BURST = [Instant(10 * SECOND + 5_000 * number) for number in range(300)]


def test_request_of_an_idle_client_was_made_when_it_was_sent():
    waits = Waits([], [Instant(SECOND), Instant(2 * SECOND)])
    made = waits.of(Instant(2 * SECOND))
    assert (made.first, made.last) == (2 * SECOND, 2 * SECOND)


def test_conditions_around_a_request_tell_when_it_was_made():
    writes = sent(BURST)
    pairs = [pair for number, pair in enumerate(zip(writes, BURST, strict=True)) if number % 10]
    waits = Waits(pairs, writes)
    for number in range(0, 300, 10):
        made = waits.of(writes[number])
        assert made.first <= BURST[number] <= made.last
        assert made.last - made.first < SECOND


@pytest.mark.parametrize(("rate", "burst"), [(50, 100), (20, 20)])
def test_conditions_far_from_a_request_bound_it_by_the_order_of_requests(rate, burst):
    """Forty requests without a report lie between the two conditions; a pause was among them."""
    instants = [*BURST[:250], *(Instant(each + 2 * SECOND) for each in BURST[250:])]
    writes = sent(instants, rate=rate, burst=burst)
    known = [*range(150, 220), *range(260, 300)]
    waits = Waits([(writes[number], instants[number]) for number in known], writes)
    for number in range(220, 260):
        made = waits.of(writes[number])
        assert made.first <= instants[number] <= made.last
        assert instants[number] - made.first < SECOND or number >= 250


def test_condition_before_a_pause_says_nothing_of_a_request_after_it():
    """While nothing was sent for a while, nothing waited."""
    writes = [*sent(BURST, rate=20, burst=20), Instant(60 * SECOND), Instant(60_200_000)]
    instants = [*BURST, Instant(60 * SECOND), Instant(59_900_000)]
    known = [*range(300), 301]
    waits = Waits([(writes[number], instants[number]) for number in known], writes)
    assert waits.of(writes[300]).first > 50 * SECOND


def test_without_conditions_the_empty_bucket_tells_since_when():
    writes = sent(BURST)
    waits = Waits([], writes)
    made = waits.of(writes[-1])
    assert writes[-1] - BURST[-1] > SECOND
    assert made.first <= BURST[-1]
    assert made.first > BURST[0]


def test_client_with_another_limit_has_only_its_conditions():
    writes = [Instant(10 * SECOND + 100 * number) for number in range(400)]
    made = Waits([], writes).of(writes[-1])
    assert (made.first, made.last) == (writes[-1], writes[-1])


def test_pair_of_another_attempt_does_not_stretch_the_wait():
    writes = sent(BURST)
    pairs = list(zip(writes, BURST, strict=True))
    number = 250
    pairs[number - 1] = (writes[number - 1], Instant(SECOND))
    made = Waits(pairs, writes).of(writes[number])
    assert made.first > 10 * SECOND


def test_slower_limit_than_usual_is_seen_in_the_conditions():
    writes = sent(BURST, rate=20, burst=20)
    pairs = [pair for number, pair in enumerate(zip(writes, BURST, strict=True)) if number % 10]
    made = Waits(pairs, writes).of(writes[60])
    assert made.first <= BURST[60] <= made.last
    assert writes[60] - BURST[60] > SECOND


@pytest.mark.parametrize(("known", "is_seen"), [((58, 62), True), ((62,), False)])
def test_two_waits_that_the_usual_limit_does_not_explain_show_a_slower_one(known, is_seen):
    """A small load has few pods whose first attempt fails while requests wait."""
    writes = sent(BURST, rate=20, burst=20)
    made = Waits([(writes[number], BURST[number]) for number in known], writes).of(writes[60])
    assert made.has_waited is is_seen
    assert not is_seen or made.first <= BURST[60] <= made.last


@pytest.mark.parametrize(("rate", "burst"), [(50, 100), (20, 20)])
def test_report_of_a_later_attempt_of_the_same_text_is_no_pair(rate, burst):
    """Each pod is tried three times, the first time without a report; the third says the same.

    The conditions come so late that for each pod by itself the third report could be of the first.
    """
    count, texts = 60, ("a node is cordoned", "no device is free", "a node is cordoned")
    made = [
        Instant((10 + 2 * turn) * SECOND + 10_000 * number)
        for turn in range(3)
        for number in range(count)
    ]
    before = [Instant(10 * SECOND - 1_000 * number) for number in range(burst + 6 * rate, 0, -1)]
    writes = sent([*before, *made], rate=rate, burst=burst)
    known = writes[len(before) :]
    pods = {}
    for number in range(count):
        turns = [turn * count + number for turn in range(3)]
        pods[str(number)] = PodTries(
            failures=[(made[at], text) for at, text in zip(turns[1:], texts[1:], strict=True)],
            refusals=[(known[at], text) for at, text in zip(turns, texts, strict=True)],
        )
    waits = waits_of(pods, writes)
    for at in range(count):
        assert waits.of(known[at]).first <= made[at] <= waits.of(known[at]).last
        assert waits.of(known[at]).last < made[2 * count]


def overloaded(seed, rate):
    """Pods that are tried four times each: their tries, and (sent, made) of all conditions.

    What an attempt sees is what had been sent by then, and only the first attempt that sees a
    version is reported. Requests wait for more than a minute at the end.
    """
    chance, texts = Random(seed), ("no device is free", "a node is cordoned")
    attempts = []
    for pod in range(100):
        at = 10 * SECOND + pod * SECOND // 5
        for turn in range(4):
            at += chance.randint(SECOND // 10, 6 * SECOND)
            attempts.append((Instant(at), str(pod), texts[turn % 2]))
    attempts.sort()
    writes = sent([at for at, _, _ in attempts], rate=rate, burst=rate)
    pods, requests = {}, []
    for number, ((made, pod, text), at) in enumerate(zip(attempts, writes, strict=True), start=7):
        tries = pods.setdefault(pod, PodTries())
        written = zip(tries.refusals, tries.written, strict=True)
        version = max((known for (when, _), known in written if when <= made), default=1)
        if version not in tries.seen:
            tries.failures.append((made, text))
            tries.seen.append(version)
        tries.refusals.append((at, text))
        tries.written.append(number)
        requests.append((at, made))
    return pods, requests


@pytest.mark.parametrize("rate", [4, 7])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_wait_is_known_however_long_it_is_and_however_few_attempts_are_reported(seed, rate):
    """Most conditions are of attempts without a report; many have the text of another's report."""
    pods, requests = overloaded(seed, rate)
    assert max(at - made for at, made in requests) > tolerances.TABLE.reported_before
    waits = waits_of(pods, [at for at, _ in requests])
    for at, made in requests:
        assert waits.longest(at) <= made
        assert waits.of(at).first - tolerances.TABLE.wait_seen <= made <= waits.of(at).last


@pytest.mark.parametrize(("rate", "burst"), [(50, 100), (10, 10), (5, 1)])
def test_earliest_instant_of_a_request_holds_whatever_the_limit_is(rate, burst):
    made = BURST[:60]
    writes = sent(made, rate, burst)
    pairs = [pair for number, pair in enumerate(zip(writes, made, strict=True)) if number % 7 == 3]
    waits = Waits(pairs, writes)
    for number, request in enumerate(writes):
        assert waits.longest(request) <= made[number]
    assert waits.longest(writes[-2]) >= pairs[-2][1] - tolerances.TABLE.overtaken_by


@pytest.mark.parametrize("rate", [50, 10, 2])
@pytest.mark.parametrize("count", [1, 30, 300])
def test_request_waited_no_longer_than_the_queue_before_it_takes(rate, count):
    """The queue alone says since when; nothing was sent for a minute before it.

    A step is known as exactly as requests of the limit overtake each other.
    """
    before, made = Instant(40 * SECOND), Instant(100 * SECOND)
    earlier = [Instant(before + number) for number in range(5)]
    writes = [Instant(made + number * SECOND // rate) for number in range(1, count + 120)]
    found = Waits((), [*earlier, *writes]).longest(writes[count - 1])
    step = SECOND // rate + tolerances.TABLE.overtaken_by
    assert made - step <= found <= made


@pytest.mark.parametrize("pause", [1, 5, 16, 19, 60, 600])
def test_request_after_a_pause_did_not_wait_whatever_the_limit_is(pause):
    """A limit that makes one request wait for seconds makes those after it wait for seconds."""
    refused, placed = Instant(10 * SECOND), Instant((10 + pause) * SECOND)
    others = [Instant(placed + 20_000 * number) for number in range(4)]
    waits = Waits([(refused, refused)], [refused, *others])
    for request in others:
        assert placed - SECOND // 2 <= waits.longest(request) <= placed


def test_hole_in_a_queue_ends_it():
    """While a request waits, one is sent with each step of the limit."""
    writes = [Instant(number * SECOND // 10) for number in range(400) if not 150 <= number < 170]
    waits = Waits((), writes)
    assert waits.longest(writes[149]) <= writes[0]
    assert waits.longest(writes[-120]) > Instant(16 * SECOND)


def unfilled(hole):
    """Ten requests a second since 0 s; after the 150th, so many were refused: all, and the rest."""
    requests = [Instant(number * SECOND // 10) for number in range(400)]
    return requests, [*requests[:150], *requests[150 + hole :]]


@pytest.mark.parametrize("hole", [5, 20, 100])
def test_refused_requests_of_a_record_fill_the_hole_in_its_queue(hole):
    requests, writes = unfilled(hole)
    wrong = Waits((), writes).longest(requests[-120])
    right = Waits((), writes, refused=Refused(seen=requests[150 : 150 + hole]))
    assert wrong > requests[149]
    assert right.longest(requests[-120]) <= requests[0]


HOLES = [
    ("an attempt for one pod", 6, 1, True),
    ("an attempt for each pod", 20, 5, True),
    ("more than the pods led to", 30, 5, False),
    ("nothing was deleted", 6, 0, False),
    ("a pause", 100, 20, False),
]


@pytest.mark.parametrize(("hole", "deleted", "is_filled"), [row[1:] for row in HOLES])
def test_deletions_fill_a_hole_where_refused_requests_are_not_recorded(hole, deleted, is_filled):
    """Each pod that was deleted unplaced has at most the requests of one attempt in the queue."""
    requests, writes = unfilled(hole)
    waits = Waits((), writes, refused=Refused(deleted=requests[100 : 100 + deleted]))
    assert (waits.longest(requests[-120]) <= requests[0]) is is_filled
    given_up = Instant(requests[-120] + 1)
    assert (waits.longest(given_up) <= requests[0]) is is_filled
    later = Waits((), writes, refused=Refused(deleted=[requests[390]] * deleted))
    assert later.longest(requests[-120]) > requests[149]


@pytest.mark.parametrize("rate", [50, 10, 2])
def test_request_that_was_given_up_waited_no_longer_than_the_queue_before_it(rate):
    """Its pod was gone before it was sent, so it is none of the requests, which may end before."""
    made = Instant(100 * SECOND)
    writes = [Instant(made + number * SECOND // rate) for number in range(1, 200)]
    waits = Waits((), writes)
    step = SECOND // rate + tolerances.TABLE.overtaken_by
    for given_up in (Instant(writes[80] + 1), Instant(writes[-1] + SECOND // rate)):
        assert made - step <= waits.longest(given_up) <= made
    quiet = Instant(writes[-1] + 60 * SECOND)
    assert waits.longest(quiet) > writes[-1]


def test_one_pass_gives_what_a_walk_back_from_each_request_gives():
    """The walk back is for requests that were given up."""
    random = Random(7)
    for _ in range(40):
        instant, writes = 0, []
        for _ in range(60):
            instant += random.choice([SECOND // 20, SECOND // 10, SECOND // 9, 3 * SECOND])
            writes.append(Instant(instant))
        waits = Waits((), writes)
        for number, request in enumerate(writes):
            assert waits.longest(request) == waits._queued_from(request, number)


def can_be_true_together(pairs):
    """Whether no request is twice in them, and none that was made later was sent earlier."""
    return all(
        (sent_a < sent_b and made_a <= made_b) or (sent_a > sent_b and made_a >= made_b)
        for (sent_a, made_a), (sent_b, made_b) in combinations(pairs, 2)
    )


def test_most_pairs_that_can_be_true_together_are_taken():
    """All sets of few pairs are tried, whose instants are equal or seconds apart."""
    random = Random(11)
    for _ in range(150):
        pairs = [
            tuple(Instant(random.randrange(5) * SECOND) for _ in range(2))
            for _ in range(random.randrange(7))
        ]
        most = max(
            count
            for count in range(len(pairs) + 1)
            if any(can_be_true_together(each) for each in combinations(set(pairs), count))
        )
        taken_pairs = in_order(pairs)
        assert set(taken_pairs) <= set(pairs)
        assert can_be_true_together(taken_pairs)
        assert len(taken_pairs) == most


def test_requests_made_at_about_the_same_time_are_sent_in_any_order():
    early = 10 * tolerances.TABLE.overtaken_by
    late = early + tolerances.TABLE.overtaken_by // 2
    pairs = [(Instant(SECOND), Instant(late)), (Instant(2 * SECOND), Instant(early + 1))]
    assert set(in_order(pairs)) == set(pairs)


def test_shorter_waits_are_taken_of_sets_of_one_size():
    """Both pairs of one request can be true beside the other one."""
    other = (Instant(9 * SECOND), Instant(9 * SECOND))
    pairs = [(Instant(5 * SECOND), Instant(made * SECOND)) for made in (1, 4, 2)]
    assert set(in_order([*pairs, other])) == {other, pairs[1]}


def test_steady_requests_cost_no_more_each_where_there_are_more():
    """Any of them may have waited since the first; none is looked for back to that one."""
    few, many = (_calls_for([Instant(each * SECOND) for each in range(n)]) for n in (300, 1200))
    assert many < 5 * few


def _calls_for(writes):
    """How many functions are called, to find since when each request may have waited."""
    waits = Waits((), writes)
    found, calls = counted(lambda: [waits.longest(each) for each in writes])
    assert found[-1] < writes[0]
    return calls


@pytest.mark.parametrize(
    ("made", "sent_at"), [(9, 9), (10, 14), (11, 14), (12, 16), (13, 16), (20, 16)]
)
def test_request_is_sent_no_earlier_than_those_that_were_made_before(made, sent_at):
    """Two requests waited: one from 10 to 14, one from 12 to 16."""
    pairs = [(Instant(sent * SECOND), Instant(at * SECOND)) for sent, at in ((14, 10), (16, 12))]
    waiting = [Instant(number * SECOND // 50) for number in range(10 * 50, 16 * 50 + 1)]
    waits = Waits(pairs, waiting)
    assert waits.passed(Instant(made * SECOND)) == sent_at * SECOND
    assert Waits([], waiting).passed(Instant(made * SECOND)) == made * SECOND


@pytest.mark.parametrize(
    ("seen", "order"), [(477, ["first", "second"]), (476, ["second", "first"])]
)
def test_attempt_whose_condition_a_later_one_saw_was_made_before_it(seen, order):
    """A source of whole seconds dates the condition later; the other attempt has its own instant.

    Only a report that names the version with the condition shows that.
    """
    at = Instant(10 * SECOND)
    tries = PodTries(
        failures=[(Instant(at + 27_000), "second")],
        refusals=[(Instant(at + 666_000), "first")],
        seen=[seen],
        written=[477],
    )
    waits = Waits([], [Instant(at + 666_000)])
    attempts = attempts_of(tries, waits, None, SECOND)
    assert [each.tried.message for each in attempts] == order
    one, two = attempts
    assert one.first <= one.instant <= one.last
    assert one.instant < two.instant

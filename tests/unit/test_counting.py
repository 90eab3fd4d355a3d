"""The same work has the same number of calls whenever garbage is collected."""

import gc

from tests.counting import counted


def test_what_listens_to_the_collector_is_not_counted():
    def listener(_phase, _details):
        return abs(-1)

    before = gc.get_threshold()
    gc.callbacks.append(listener)
    try:
        quiet = counted(lambda: [[] for _ in range(300)])
        gc.set_threshold(3)
        assert counted(lambda: [[] for _ in range(300)]) == quiet
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(listener)
    assert gc.isenabled()


def test_calls_grow_with_the_work():
    (_, few), (made, many) = (counted(lambda n=n: [abs(i) for i in range(n)]) for n in (3, 30))
    assert made == [*range(30)]
    assert many - few == 27

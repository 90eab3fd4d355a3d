"""The exponent of a curve is the power by which it grows."""

import random

import pytest

from bench.growth import exponent

SIZES = [25 << turn for turn in range(5)]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("cost", [0.001, 7.0])
def test_exponent_of_a_power_law_is_its_power(power: float, cost: float) -> None:
    assert exponent([(size, cost * size**power) for size in SIZES]) == pytest.approx(power)


def test_noise_of_a_tenth_moves_the_exponent_little() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        points = [(size, size * draw.uniform(0.9, 1.1)) for size in SIZES]
        assert exponent(points) == pytest.approx(1.0, abs=0.12)


def test_costs_of_nothing_have_no_say() -> None:
    assert exponent([(1, 0.0), (2, 0.0)]) == 0.0
    assert exponent([(1, 0.0), (2, 2.0), (4, 4.0)]) == pytest.approx(1.0)

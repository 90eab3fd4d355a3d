"""Amounts of one comparison have one unit, are exact or say so, and never look equal unless."""

import random
import re
from fractions import Fraction

import pytest

from app.domain.values.quantity import QuantityFormat, parse
from app.domain.values.texts import notation
from tests.truth.facts import amount


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (["3906250Ki", "3G", "10G"], ["4G", "3G", "10G"]),
        (["30Gi", "20Gi", "80Gi"], ["30Gi", "20Gi", "80Gi"]),
        (["1500Mi", "1Gi", "2Gi"], ["1500Mi", "1024Mi", "2048Mi"]),
        (["1536Mi", "1Gi", "2Gi"], ["1.5Gi", "1Gi", "2Gi"]),
        (["1100M", "1G", "0", "2G"], ["1.1G", "1G", "0", "2G"]),
        (["4G", "2.5Gi", "10Gi"], ["about 3.73Gi", "2.5Gi", "10Gi"]),
        (["4Gi", "0", "10G"], ["about 4.29G", "0", "10G"]),
        (["2G", "1.5G", "10Gi"], ["2G", "1.5G", "about 10.74G"]),
        (["1Gi", "1e3"], ["1073741824", "1000"]),
        (["2000Mi", "10Gi"], ["2000Mi", "10240Mi"]),
        (["2000Ki", "4M"], ["2048k", "4000k"]),
        (["100m", "4"], ["0.1", "4"]),
        (["250m", "500m"], ["250m", "500m"]),
        (["1000", "500", "2000"], ["1000", "500", "2000"]),
        (["3k", "1e3"], ["3k", "1k"]),
        (["1073741825", "1Gi"], ["1073741825", "1073741824"]),
        (["1", "10Gi"], ["1", "10737418240"]),
        (["1", "1Mi"], ["1", "1048576"]),
        (["-2Gi", "4Gi"], ["-2Gi", "4Gi"]),
        (["-1500m", "4"], ["-1.5", "4"]),
        (["0", "0"], ["0", "0"]),
    ],
)
def test_amounts_of_a_comparison_have_one_unit(written, texts):
    values = [parse(one) for one in written]
    assert notation.alike([one.nanos for one in values], values[-1].format) == texts


@pytest.mark.parametrize(
    ("amounts", "texts"),
    [
        ((4, 2), ["4", "2"]),
        ((40 * 2**30, 0), ["40Gi", "0"]),
        ((2**21, 2**20), ["2Mi", "1Mi"]),
        ((2**21, 1000), ["2097152", "1000"]),
        ((1024, 512), ["1024", "512"]),
        ((5 * 10**9, 10**9), ["5G", "1G"]),
    ],
)
def test_amounts_without_a_notation_are_binary_as_multiples_of_mi(amounts, texts):
    assert notation.alike([one * 10**9 for one in amounts]) == texts


def test_programs_get_exact_amounts():
    written = ("1.5G", "1Gi", "2Gi")
    amounts = [parse(one).nanos for one in written]
    exact = notation.exactly_alike(amounts, QuantityFormat.BINARY_SI)
    assert exact == ["1500000000", "1073741824", "2147483648"]
    assert notation.alike(amounts, QuantityFormat.BINARY_SI) == ["about 1.4Gi", "1Gi", "2Gi"]


def test_amounts_that_cannot_be_read_stay_as_written():
    assert notation.alike_texts("3906250Ki", "5G") == ["4G", "5G"]
    assert notation.alike_texts("much", "5Gi") == ["much", "5Gi"]
    assert notation.alike_texts("1.0Gi", 4) == ["1073741824", "4"]


_UNIT = re.compile(r"(about )?(-?[\d.]+)(\D*)")
_SPELLINGS = ("{}", "{}k", "{}M", "{}G", "{}Ki", "{}Mi", "{}Gi", "{}00m", "{}.5Gi", "{}e6", "{}n")


@pytest.mark.parametrize("seed", range(4))
def test_drawn_amounts_are_told_truly(seed):
    """Each text is the amount, or rounded at its last digit; order and equality are kept."""
    pick = random.Random(seed)
    for _ in range(100):
        written = [
            pick.choice(_SPELLINGS).format(pick.choice((0, 1, 3, 5, 64, 1000, 4096, 999_999)))
            for _ in range(pick.randint(1, 4))
        ]
        numbers = [amount(one) for one in written]
        texts = notation.alike_texts(*written)
        shown = [_UNIT.fullmatch(one) for one in texts]
        assert len({one[3] for one in shown if one[2] != "0"}) <= 1, (written, texts)
        for number, one in zip(numbers, shown, strict=True):
            near = amount(one[2] + one[3])
            digit = amount("1" + one[3]) / 10 ** len(one[2].partition(".")[2])
            off = abs(near - number)
            assert Fraction(0) < off <= digit / 2 if one[1] else off == 0, (written, texts)
        order = sorted(range(len(texts)), key=lambda place: numbers[place])
        near = [amount(one[2] + one[3]) for one in shown]
        assert sorted(near) == [near[place] for place in order], (written, texts)
        assert len(set(near)) == len(set(numbers)), (written, texts)

"""The interval of a share that a sample shows."""

import math

Z_95 = 1.959964
"""The quantile of the normal distribution for 95 %."""


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share."""
    if not tried:
        return 0.0, 1.0
    share, weight = killed / tried, Z_95**2 / tried
    middle = (share + weight / 2) / (1 + weight)
    reach = Z_95 / (1 + weight) * math.sqrt(share * (1 - share) / tried + weight / (4 * tried))
    return max(0.0, middle - reach), min(1.0, middle + reach)

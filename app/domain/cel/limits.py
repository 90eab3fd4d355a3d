"""Bounds of the CEL package, as defaults; callers pass their own where they differ.

Parity: allocator.md 11.6 for cost and length of an expression.
"""

from typing import Final

COST_LIMIT: Final = 1_000_000
"""Run-time cost of one evaluation, and estimated cost that admission accepts."""

EXPRESSION_BYTES_MAX: Final = 10_240
"""Length of an expression that admission accepts, in bytes of UTF-8."""

EXPRESSION_CODE_POINTS_MAX: Final = 100_000
"""Length above which an expression is not even parsed."""

NESTING_MAX: Final = 120
"""Nesting of brackets that the parser accepts. Upstream accepts 250; the parser needs up to five
Python frames a level, and nothing that people write comes near either."""

DEPTH_MAX: Final = 200
"""Depth of the tree after macro expansion. Checking and evaluating recurse over the tree with two
or three Python frames a level, so this keeps them inside the interpreter's own bound."""

NODES_MAX: Final = 60_000
"""Nodes of the tree after macro expansion; `optMap` doubles its receiver."""

ERRORS_REPORTED_MAX: Final = 100
"""Issues listed for one expression; the rest is counted."""

INCLUDES_ELEMENTS_MAX: Final = 48
"""Elements that `includes` looks at before it gives up (allocator.md 11.3)."""

# Upstream stops an evaluation by time; the following stop it by work that costs do not count.

ELEMENTS_MAX: Final = 2_000_000
"""Elements of a list that an evaluation makes. Making one of more ends it like the cost limit."""

TEXT_MAX: Final = 20_000_000
"""Code points of a text that an evaluation makes; beyond, as for `ELEMENTS_MAX`."""

COMPARISONS_MAX: Final = 2_000_000
"""Parts of nested values that one comparison, text or walk looks at, and pairs that one function
on lists compares; beyond, as for `ELEMENTS_MAX`."""

WORK_MAX: Final = 5_000_000
"""Elements that calls whose cost does not depend on sizes handle in one evaluation, in sum."""

COST_MAX: Final = 2**64 - 1
"""Where sums and products of costs and sizes saturate."""

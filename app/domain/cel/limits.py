"""Default bounds of the CEL package; callers can pass other bounds.

Parity: allocator.md 11.6 for cost and length of an expression.
"""

from typing import Final

COST_LIMIT: Final = 1_000_000
"""The largest run-time cost of one evaluation, and the largest estimated cost in admission."""

EXPRESSION_BYTES_MAX: Final = 10_240
"""The largest length of an expression in admission, in bytes of UTF-8."""

EXPRESSION_CODE_POINTS_MAX: Final = 100_000
"""The largest length of an expression that is parsed, in code points."""

NESTING_MAX: Final = 120
"""The deepest nesting of brackets that the parser accepts. Upstream accepts 250; the parser needs
up to five Python frames for each level, and real expressions are far below both bounds."""

DEPTH_MAX: Final = 200
"""The largest depth of the tree after macro expansion. Checking and evaluation recurse over the
tree with two or three Python frames for each level, so they stay within the interpreter's own
bound."""

NODES_MAX: Final = 60_000
"""The largest number of nodes after macro expansion; `optMap` doubles its receiver."""

ERRORS_REPORTED_MAX: Final = 100
"""The largest number of issues listed for one expression; the others are counted."""

INCLUDES_ELEMENTS_MAX: Final = 48
"""The number of elements that `includes` checks before it fails (allocator.md 11.3)."""

# Upstream stops an evaluation by time. These bounds stop it by work that costs do not include.

ELEMENTS_MAX: Final = 2_000_000
"""The largest number of elements in a list that an evaluation makes; a longer list ends the
evaluation like the cost limit."""

TEXT_MAX: Final = 20_000_000
"""The largest number of code points in a string that an evaluation makes; a longer string ends it
like `ELEMENTS_MAX`."""

COMPARISONS_MAX: Final = 2_000_000
"""The largest number of parts of nested values that one comparison, text or walk visits, and of
pairs that one function on lists compares; more end the evaluation like `ELEMENTS_MAX`."""

WORK_MAX: Final = 5_000_000
"""The largest total number of elements in one evaluation that calls process whose cost does not
depend on sizes."""

COST_MAX: Final = 2**64 - 1
"""The value at which sums and products of costs and sizes saturate."""

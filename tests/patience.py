"""The longest wait of a test for an expected state, on the slowest machine.

A test fails for what it observes, never for how long it takes. This bound ends a wait that would
never end; the `timeout` of pytest, which is longer, ends a whole test.
"""

PATIENCE_SECONDS = 900.0

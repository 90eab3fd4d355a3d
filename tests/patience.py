"""How long a test waits for what it waits for: until it is there, on the slowest machine.

A test fails for what it sees, never for when. What hangs for ever ends by this bound, and a test
as a whole by the `timeout` of pytest, which is longer.
"""

PATIENCE_SECONDS = 900.0

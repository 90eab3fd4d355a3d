"""Whether a history is true: decisions made again, allocations audited, invariants."""

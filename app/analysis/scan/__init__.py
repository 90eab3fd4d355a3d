"""Which incidents of the gallery a history shows: where, how sure, and how often.

Each detector follows the events of a history once. `broken_rules` reads what the invariants found,
`reports` what controllers said, `traces` what objects went through. What a history does not show by
itself, such as counters that stayed booked in a refused attempt, is not looked for here: `redra
why` names the defects that decided.
"""

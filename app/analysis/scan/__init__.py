"""Which incidents of the gallery a history shows: where, how sure, and how often.

Each detector follows the events of a history once. `broken_rules` reads what the invariants found,
`reports` what controllers and the API said, `traces` what objects went through, `standing` what
stayed as it was. What a history does not show by itself, such as counters that stayed booked in a
refused attempt, shows where `attempts` makes the attempt again, with the defect and without it;
`otherwise` are the worlds that differ in something else.
"""

"""The scan of a history for the incidents of the gallery: where, how certainly, how often.

Each detector follows the events of a history once. `broken_rules` reads the violations of
invariants, `reports` the messages of controllers and the API, `traces` the changes of objects,
`lasting_states` what lasts. Some incidents leave no trace in a history, such as counters that
stayed booked in a refused attempt. `attempts` finds them by making the attempt again, with the
defect and without it; `alternative_worlds` has the worlds that differ in something else.
"""

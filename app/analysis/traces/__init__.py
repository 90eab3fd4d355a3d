"""A history as a trace: the states, events and decisions that a trace viewer draws.

`trace_events` writes the format, `recorded_links` finds the arrows of a recording, which holds
neither decisions nor causes. Does not belong here: how states are folded from the log (`spans`).
Imported by the API.
"""

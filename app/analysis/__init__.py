"""Pure functions that answer questions about a history: why, what if, is it correct, how much.

Belongs here: explanations, blast radius, comparison of replays, verification of decisions, fleets.
Does not belong here: reading the log, waiting, the order of effects (`app.service`).
"""

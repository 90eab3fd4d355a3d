"""Questions about a history, answered by pure functions: why, what if, is it true, how much.

Belongs here: explanations, blast radius, comparison of replays, verification of decisions, fleets.
Does not belong here: reading the log, waiting, the order of effects (`app.service`).
"""

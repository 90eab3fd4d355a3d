"""Rehearsals of upgrades: runs the inputs of a history in two worlds, and compares these.

What the two have to do with each other is `app/analysis/rehearse`; the runs are those of decide
replays.
"""

"""Rehearsals of upgrades: run the inputs of a history in two worlds, and compare the results.

The comparison of the two worlds is in `app/analysis/rehearse`; the runs are those of decide
replays.
"""

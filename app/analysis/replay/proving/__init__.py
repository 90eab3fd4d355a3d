"""Proofs of differences: which hypotheses are tried in which order, and which of them hold.

Belongs here: the prover, the evidence besides the traces, the search for switches, and the bounds
of all this. Does not belong here: what a hypothesis is (`hypotheses`, `races`), and making runs
(`app.service.replays.deciding`).
"""

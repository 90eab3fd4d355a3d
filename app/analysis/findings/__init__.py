"""Findings: problems in a history, one sentence for each, counted and ranked.

Pods that wait, by their first cause; pods that were evicted; claims that are not deleted; unusable
pools; violated invariants; and what a recording lacks. Each finding counts distinct objects and
names the first and the last revision at which it shows.

Belongs here: judgements of a whole history. Does not belong here: why one object is in its state,
which is in `explain`.
"""

"""What is wrong in a history: one sentence for each thing, counted and ranked.

Pods that wait, by their first cause; pods that were evicted; claims that do not end; pools that
cannot be used; invariants that do not hold; what a recording lacks. Each finding counts distinct
objects and names the first and the last revision at which it shows.

What belongs here judges a whole history. Why one object is as it is belongs to `explain`.
"""

"""Remaining capacity: copies of a claim or pod, the largest claim of each class, stranded counters.

May use the hypothetical cluster of `blast`; asks the scheduler's own attempts and the allocator.
"""

"""A real cluster recorded as it goes: lists and watches become the events of a history.

Belongs here: what is asked of the cluster and when (`snapshot`, `following`), the order of what it
shows (`window`), the appends with the positions to go on from (`journal`, `resuming`), and all
together (`recorder`). Does not belong here: HTTP (`adapters/cluster`). Imported by bootstrap.

A recorder must not lie: whatever may be missing is a `GapObserved` event before what comes after
it. The log holds everything that a recorder needs to go on, so either side may end at any time.
"""

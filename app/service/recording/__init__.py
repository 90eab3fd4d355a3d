"""A real cluster recorded live: its lists and watches become the events of a history.

Belongs here: the requests to the cluster and their order (`snapshot`, `following`), the order of
the changes it shows (`window`), the appends with the positions to resume from (`journal`,
`resuming`), and the whole (`recorder`). Does not belong here: HTTP (`adapters/cluster`). Imported
by bootstrap.

A recorder must not lie: everything that may be missing is a `GapObserved` event before the events
that follow the gap. The log holds everything that a recorder needs to resume, so either side may
end at any time.
"""

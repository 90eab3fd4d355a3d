"""Pure folds over the log, one module per view, each named and versioned.

Belongs here: how an event changes a view, which rows of the view's tables changed, the state hash.
Does not belong here: queries, I/O, other projections (they do not import each other). Imported by
the service; imports only the domain.
"""

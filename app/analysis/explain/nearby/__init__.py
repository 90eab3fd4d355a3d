"""Facts beside an answer: similar names, full nodes, nodes without a driver, updates, outcomes.

A fact of another object that a user would look at next. It blames nothing: it stands beside the
reason. Imported by `circumstances`, `pods` and `untried`.
"""

"""Judges recorded differences to a real API server: each is gone, listed with its reason, or open.

A block of a file is a request and the parts of the two answers that differed. `blocks` reads them,
`given` creates the objects of a request, `replaying` sends it again, and `judging` gives the
verdict. The texts of the answers are not kept here: `data/api-differences.json` names blocks by
file and a hash of their request, and rows of docs/reference/behaviours.md by their number.
"""

"""Judges recorded differences to a real API server: each is gone, listed with its reason, or open.

A block of a file is a request and the parts of the two answers that differed. `blocks` reads them,
`replaying` sends a request again over what `given` makes for it, and `judging` says what became
of each. The answers' texts are not kept here: `data/api-differences.json` names blocks by file and
a hash of their request, and rows of docs/reference/behaviours.md by their number.
"""

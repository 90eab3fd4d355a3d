"""Comparison of two histories, decision by decision; each difference is traced back to its root.

Belongs here: the course of each pod on either side (`courses`), which pods correspond (`matching`),
what outsiders wrote differently (`inputs`), the classes of differences (`classes`), the reasons of
each side at the moment where they diverge (`testimony`, `divergences`), the chains of causes
(`causes`) and the answer (`report`, `text`). Does not belong here: reading histories
(`app.service.diffing`), and the proofs of `app.analysis.replay`, which run the controllers again.
"""

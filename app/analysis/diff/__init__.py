"""Two histories compared decision by decision, each difference followed back to its root.

Belongs here: what became of each pod on either side (`courses`), which pods are the same
(`matching`), what outsiders wrote differently (`inputs`), the classes of differences (`classes`),
what each side says at the moment where they part (`testimony`, `partings`), the chains of causes
(`causes`) and the answer (`report`, `text`). Does not belong here: reading histories
(`app.service.diffing`), and the proofs of `app.analysis.replay`, which run the controllers again.
"""

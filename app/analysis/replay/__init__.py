"""Decide replay: compares what a recording contains with what the controllers decide again.

Belongs here: sorting a recording into inputs and decisions (`authors`, `writers`, `inputs`), its
pace (`pace`, `attempts`, `lags`), traces (`traces`), their comparison (`differences`, `classes`)
and the proof of each difference (`hypotheses`, `proving`). Does not belong here: running the
controllers (`app.service.replays.deciding`).
"""

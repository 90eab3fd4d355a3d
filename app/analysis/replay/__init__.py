"""Two runs of one recording, compared: what was recorded, and what is decided again.

Belongs here: sorting a recording into inputs and decisions (`authors`, `writers`, `inputs`), its
pace (`pace`, `attempts`, `lags`), traces (`traces`), their comparison (`differences`, `classes`)
and the proof of each difference (`hypotheses`, `proving`). Does not belong here: running the
controllers (`app.service.replays.deciding`).
"""

"""Decide replay: a recording is decided again from its outside inputs, and compared.

What belongs here: sorting a recording into inputs and decisions (`authors`, `writers`, `inputs`),
running the controllers at the recorded pace (`pace`, `attempts`, `lags`, `names`), reading both
runs into traces (`traces`) and comparing them (`differences`, `classes`). Nothing is written to a
history. The bootstrap package and the command line use it.
"""

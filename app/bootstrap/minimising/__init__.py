"""Minimising of histories: their parts (`sources`), the judgement of one candidate (`judging`).

The search over all candidates is in `searching`.
"""

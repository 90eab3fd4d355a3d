"""What keeps long answers from holding up short ones: errands, and decoding in turns.

Belongs here: how work is divided and waited for. What an answer says belongs to `app/analysis`; who
may see it, to `app/api`.
"""

"""Long answers that do not delay short ones: errands, jobs, and the decoding of views in parts.

Belongs here: how work is divided and waited for. Does not belong here: the content of an answer
(`app/analysis`) and who may see it (`app/api`).
"""

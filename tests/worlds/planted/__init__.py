"""Small worlds with a planted cause: the generator knows why, and judges what `why` answers.

Nothing here reads the analysis: a plant says which object is asked about and which names and
numbers have to stand together in one branch of the answer, near its beginning.
"""

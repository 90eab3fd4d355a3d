"""Small worlds with a planted cause: the generator knows the cause, and judges answers of `why`.

Nothing here reads the analysis: a plant names the object of the question, and the names and numbers
that must occur together in one branch of the answer, near its beginning.
"""

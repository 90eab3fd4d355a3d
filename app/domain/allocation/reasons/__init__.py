"""The explanation of answers: causes, dead ends, and changes that would help."""

"""The names of kinds in sentences.

Kubernetes writes a name of several words as the API does (`ResourceSlice`), and sentences write a
name of one word as any other noun (`pod`). Commands and `KIND/NAME` have names in lower case.
"""


def in_sentence(kind: str) -> str:
    """The word for an object of a kind: `ResourceSlice` for ResourceSlice, `pod` for Pod."""
    return kind if kind[1:] != kind[1:].lower() else kind.lower()

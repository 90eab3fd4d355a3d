"""The fields that entries of many lists have, such as containers and ports, and references too."""

from app.domain.values.fields import paths
from app.domain.values.identifiers import Uid

name = paths.text("name")
"""The name of an entry, or of the object that a reference is to."""

uid = paths.typed(Uid, paths.text("uid"))
"""The uid of an entry, such as a consumer of a claim, of the object that a reference is to, or of
the object that a decision is about.
"""

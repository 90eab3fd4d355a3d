"""Spellings of values in texts for people.

Belongs here: how Go prints a value in a message, which characters of foreign texts are escaped,
in which unit amounts are compared, how a sentence spells the name of a kind.
Does not belong here: the words of an answer. All of `app.domain` may import it.
"""

"""The functions of the language and of its extensions."""

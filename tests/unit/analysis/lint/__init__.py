"""The rules of the linter, judged by defects that a machine plants in clean objects."""

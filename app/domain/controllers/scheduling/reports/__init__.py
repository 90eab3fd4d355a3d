"""The reports of the scheduler: texts of conditions, and Event objects."""

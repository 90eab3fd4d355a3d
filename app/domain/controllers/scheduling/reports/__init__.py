"""The reports of the scheduler: messages of conditions, and Event objects."""

"""What the scheduler says: texts of conditions, and Event objects."""

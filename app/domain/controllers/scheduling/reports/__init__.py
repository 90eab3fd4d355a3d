"""What the scheduler says: Events, conditions, summaries of decisions, answers of nodes."""

"""Where pods wait, and which event lets them be tried again."""

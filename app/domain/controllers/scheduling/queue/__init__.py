"""The scheduling queue: waiting pods, and the events after which they are tried again."""

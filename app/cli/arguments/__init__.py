"""The arguments and options that many commands share."""

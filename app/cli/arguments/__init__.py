"""What arguments and options of many commands mean, read in one place for all of them."""

"""Commands for histories over time: paced replay and continuous checks."""

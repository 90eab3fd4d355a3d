"""Commands that run variants of a history or export it: minimise, rehearse, sweep, export."""

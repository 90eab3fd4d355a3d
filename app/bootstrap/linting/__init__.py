"""`redra lint`: its sources as subjects of rules (`sources`), and changes over time (`changes`)."""

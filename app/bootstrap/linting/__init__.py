"""`redra lint`: the objects that rules judge (`sources`), and changes over time (`changes`)."""

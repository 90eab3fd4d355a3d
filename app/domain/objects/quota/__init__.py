"""ResourceQuotas: how much of each resource an object uses, and whether a new object fits."""

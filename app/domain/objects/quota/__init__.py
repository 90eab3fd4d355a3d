"""ResourceQuotas: what an object counts for, and whether one more fits."""

"""The scheduling cycle: an attempt finds a node and devices for one pod, or says why not."""

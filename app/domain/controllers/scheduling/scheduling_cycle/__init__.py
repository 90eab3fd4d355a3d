"""The scheduling cycle: an attempt finds a node and devices for one pod, or the reasons why not."""

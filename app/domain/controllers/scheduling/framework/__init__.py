"""One attempt to place one pod: nodes, the filters that are always asked, scores, the choice."""

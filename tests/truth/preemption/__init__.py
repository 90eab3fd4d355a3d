"""Whether pods are evicted for others as counted: drawn priorities, and a model of the victims."""

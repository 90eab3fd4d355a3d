"""Whether as many copies fit as `fit` says: drawn pods, created until one gets no node."""

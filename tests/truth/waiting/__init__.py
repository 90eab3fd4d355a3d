"""Whether `why` names what keeps a pod waiting: small worlds, and a model that tries everything."""

"""The workers of a verification that several processes share."""

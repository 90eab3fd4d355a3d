"""The scheduling framework: nodes and their pods, requests of a pod, filters and scores."""

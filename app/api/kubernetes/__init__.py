"""The Kubernetes API: paths, verbs, representations, lists and watches."""

"""redra: a control plane emulator for `resource.k8s.io` whose only truth is an event log."""

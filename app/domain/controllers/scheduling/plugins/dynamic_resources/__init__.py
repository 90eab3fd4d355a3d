"""The plug-in DynamicResources: claims of pods, devices on nodes, bindings that take time."""

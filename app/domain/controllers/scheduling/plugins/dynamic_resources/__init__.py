"""The plug-in DynamicResources: claims of pods, devices on nodes, and binding conditions."""

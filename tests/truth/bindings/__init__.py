"""Whether pods wait for binding conditions as counted: drawn drivers, and the times they take."""

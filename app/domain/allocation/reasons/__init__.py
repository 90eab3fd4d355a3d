"""Why a node gets devices or none: causes, dead ends, and changes that would help."""

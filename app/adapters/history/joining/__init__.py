"""Records of several sources become one ordered stream."""

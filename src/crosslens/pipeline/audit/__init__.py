"""An audit: everything that can be computed from what was given, stage by stage, each kept by itself."""

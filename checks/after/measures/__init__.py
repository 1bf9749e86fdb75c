"""Statistics and text measures that probes share."""

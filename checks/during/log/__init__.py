"""From bytes to lines, incidents, phases and an ending: reading a log, not judging it."""

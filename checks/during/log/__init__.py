"""Read a log, from bytes to lines, incidents, phases and an ending. The room above judges it."""

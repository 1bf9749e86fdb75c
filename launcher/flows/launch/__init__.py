"""Start a server and follow it: launch, attach, stop, and the engine's own dry run."""

"""Use cases around a start: launch, attach, stop, ask the engine."""

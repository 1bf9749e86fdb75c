"""A stand-in that starts, answers and dies like the engine, for tests of the launcher. Standard library only."""

"""A stand-in that dies and answers like the engine, for tests of everything around it. Standard library only."""

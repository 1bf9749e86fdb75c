"""The engine's twin: a release's own argument code, run here with the host and the model taken from facts."""

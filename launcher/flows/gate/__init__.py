"""Use cases around a change of profiles: judge it, replay recorded runs, try it on a host."""

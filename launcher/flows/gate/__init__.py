"""Gate a change of profiles: judge it, judge recorded runs again, and try it on a host."""

"""The probes: the requests that are sent to a running server, and how each reply is judged."""

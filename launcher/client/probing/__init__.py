"""Sending what probes ask: one request (`send`), many at once within the server's limit (`pool`)."""

"""Sends the requests of probes: one request (`send`), many concurrently within the server's limit (`pool`)."""

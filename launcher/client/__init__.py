"""HTTP to the server under test; the only room that knows httpx."""

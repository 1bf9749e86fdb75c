"""HTTP to the server under test: the only room that imports httpx."""

"""What SGLang releases accept: flag schemas, their history, the releases themselves, and where messages are raised."""

"""What SGLang releases accept: flag schemas, their history, the known releases, and the sites that raise messages."""

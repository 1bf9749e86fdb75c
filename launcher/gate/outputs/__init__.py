"""A Report in the formats that other tools read. Each module is one format: a pure function from Report to text."""

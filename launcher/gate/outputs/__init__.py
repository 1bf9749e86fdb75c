"""A Report in the forms that other tools read: each module is one form, a pure function from Report to text."""

"""Flag schema, environment variables and raise sites out of an engine's own source text: no import of it, no torch.

`describe(from_wheel(...))` here, or `bundle.program_text()` sent to a host. What the result means for a launch is in
`checks.engine.flag_schema` (flags) and `checks.engine.raise_sites` (messages).
"""

"""Read flag schema, environment variables and raise sites from an engine's source text, without importing it or torch.

Call `program.describe(from_wheel(...))` on this machine, or send `remote_program.program_text()` to a host.
`checks.engine.flag_schema` (flags) and `checks.engine.raise_sites` (messages) use the result.
"""

"""Review a change of profiles like code: what changed, what it affects, what the policy decides, how it is shown."""

"""A profile change judged like code: what changed, what it affects, what the policy says of it, where it is shown."""

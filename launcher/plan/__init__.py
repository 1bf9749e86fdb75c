"""What a launch will start: the plan, its shell script, and the facts that rules judge it by. Pure."""

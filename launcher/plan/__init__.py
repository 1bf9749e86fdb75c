"""What will be started: the plan, its shell script, and the facts it was judged by. Pure."""

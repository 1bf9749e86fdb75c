"""Goes and gets the evidence: transports, runs, flows and the command line. Judging is in `checks`."""

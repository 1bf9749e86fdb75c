import sys

from launcher.cli.app import LAUNCH, run

sys.exit(run("launch", LAUNCH, ["check", "--case", sys.argv[1], "--json"]))

"""Test files that take more than about four seconds together; `make quick` leaves them out (marker `slow`)."""

LONG_FILES = frozenset(
    {
        "tests/checks/during/log/test_restarts.py",
        "tests/checks/during/test_corpus.py",
        "tests/checks/during/test_matching.py",
        "tests/checks/during/test_proposed_entry.py",
        "tests/checks/during/test_shuffled.py",
        "tests/docs/test_claims.py",
        "tests/docs/test_expect_keys.py",
        "tests/docs/test_gate_keys.py",
        "tests/launcher/cli/test_import_budget.py",
        "tests/launcher/cli/test_validate_command.py",
        "tests/launcher/cli/test_wording_decides_nothing.py",
        "tests/launcher/flows/diagnose/test_host_evidence.py",
        "tests/launcher/flows/gate/test_judge_change.py",
        "tests/launcher/flows/validate/test_prove.py",
        "tests/launcher/flows/validate/test_suite.py",
        "tests/launcher/flows/validate/test_suite_faults.py",
        "tests/launcher/gate/test_git_history.py",
        "tests/launcher/gate/test_ready_made.py",
        "tests/launcher/plan/test_launch_script.py",
        "tests/launcher/transport/test_contract.py",
        "tests/launcher/transport/test_recorded.py",
        "tests/launcher/transport/test_run_contract.py",
        "tests/launcher/transport/test_ssh_faults.py",
    }
)

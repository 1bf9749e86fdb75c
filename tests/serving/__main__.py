"""The command line: `python -m tests.serving list|serve|witness|odd|proxy`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.serving.oddities import ODDITIES


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.serving", description="A stand-in of an SGLang server, with faults.")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list faults, odd servers and what the proxy knows")
    listing.add_argument("--mechanism", default="")
    serve = commands.add_parser("serve", help="serve until interrupted")
    serve.add_argument("--fault", action="append", default=[])
    serve.add_argument("--odd", choices=sorted(ODDITIES))
    serve.add_argument("--port", type=int, default=30000)
    serve.add_argument("--speed", type=float, help="tokens a second of one stream; 0 does not sleep")
    witness = commands.add_parser("witness", help="prove that faults show, and that a healthy server shows nothing")
    witness.add_argument("names", nargs="*")
    witness.add_argument("--all", action="store_true")
    witness.add_argument("--mechanism", default="")
    witness.add_argument("--proxy", action="store_true", help="the faults that the proxy knows")
    odd = commands.add_parser("odd", help="prove that no witness sees anything on the odd servers")
    odd.add_argument("names", nargs="*")
    odd.add_argument("--all", action="store_true")
    proxy = commands.add_parser("proxy", help="plant faults before a real server")
    proxy.add_argument("--upstream", required=True)
    proxy.add_argument("--fault", action="append", default=[])
    proxy.add_argument("--port", type=int, default=30001)
    return parser.parse_args(given)


def _list(mechanism: str) -> int:
    from tests.serving.proxy_rules import RULES
    from tests.serving.table import COMBINED, FAULTS, MECHANISMS, SINGLE, counts, rare

    for letter, title in MECHANISMS.items():
        if mechanism and letter != mechanism:
            continue
        print(f"{letter}. {title}: {counts()[letter]}")
        for fault in FAULTS.values():
            if fault.mechanism == letter:
                print(f"  {fault.name:36} {fault.rate:28} {fault.summary}")
    if not mechanism:
        print(f"\n{len(SINGLE)} faults and {len(COMBINED)} combinations, {len(rare())} of them not with every request")
        print(f"\nOdd but healthy: {len(ODDITIES)}")
        for oddity in ODDITIES.values():
            print(f"  {oddity.name:36} {oddity.summary}")
        print(f"\nBefore a real server (proxy): {len(RULES)}")
        for fault in RULES.values():
            print(f"  {fault.name:36} {fault.rate:28} {fault.summary}")
    return 0


def _serve(chosen: argparse.Namespace) -> int:
    from tests.serving.server import serving

    options = {} if chosen.speed is None else {"speed": chosen.speed}
    with serving(chosen.fault, chosen.odd, chosen.port, **options) as (url, _state):
        return _wait(url)


def _proxy(chosen: argparse.Namespace) -> int:
    from tests.serving.proxy import proxying

    with proxying(chosen.upstream, chosen.fault, chosen.port) as url:
        return _wait(url)


def _wait(url: str) -> int:
    print(url, flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return 0


def _witness(chosen: argparse.Namespace) -> int:
    from tests.serving.proving import prove, prove_proxy
    from tests.serving.proxy_rules import RULES
    from tests.serving.table import FAULTS

    known = RULES if chosen.proxy else FAULTS
    names = chosen.names or [name for name, fault in known.items() if chosen.all or fault.mechanism == chosen.mechanism]
    failed = 0
    for proof in prove_proxy(names) if chosen.proxy else prove(names):
        failed += not proof.holds
        told = "ok  " if proof.holds else "FAIL"
        print(
            f"{told} {proof.name:48} shown {proof.shown} healthy {proof.healthy} {proof.seconds:5.1f} s {proof.note}",
            flush=True,
        )
    print(f"{len(names) - failed} of {len(names)} witnesses see their fault, and nothing on a healthy server")
    return 1 if failed else 0


def _odd(chosen: argparse.Namespace) -> int:
    from tests.serving.proving import plain_names, prove_odd

    failed = 0
    for odd in chosen.names or (list(ODDITIES) if chosen.all else []):
        begun = time.monotonic()
        proofs = list(prove_odd(odd, plain_names(odd)))
        seen = [proof for proof in proofs if proof.healthy]
        skipped = sum(proof.healthy is None for proof in proofs)
        failed += len(seen)
        print(
            f"{'FAIL' if seen else 'ok  '} {odd:20} {len(proofs) - skipped} asked, {skipped} not applicable, "
            f"{time.monotonic() - begun:.1f} s",
            flush=True,
        )
        for proof in seen:
            print(f"       {proof.name} {proof.note}")
    return 1 if failed else 0


def main(given: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    chosen = _arguments(given)
    if chosen.command == "list":
        return _list(chosen.mechanism)
    if chosen.command == "serve":
        return _serve(chosen)
    if chosen.command == "witness":
        return _witness(chosen)
    return _odd(chosen) if chosen.command == "odd" else _proxy(chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

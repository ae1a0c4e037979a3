#!/usr/bin/env python3
"""Attacks the library with damaged files, arrays, calls and requests, and counts what happens.

    python3 tools/attack.py --jobs 2           everything: a million files, an hour on two cores
    python3 tools/attack.py --quick            a minute of it
    python3 tools/attack.py --only read-npz    targets whose names begin so; may be repeated
    python3 tools/attack.py --only kill        processes killed while they save and fit
    python3 tools/attack.py --only load        a server under load
    python3 tools/attack.py --resume a.json    goes on where a run with --state a.json ended

The last part of a whole run is `kill` and `load`; one with --quick or --seconds leaves them out.

Needs the library and its `test` extra in this Python, and PyTorch for networks. Failing cases are
kept in tests/fuzz/found; `--replay FILE` tries them again. Exits with 1 if anything failed:
a crash, an exception that is not ours, a hang, too much memory. docs/threat_model.md says what is
promised.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "tests" / "fuzz"
QUICK_SECONDS = 60.0
#: Besides the targets: parts of the campaign that are programs of their own.
PROGRAMS = {
    "kill": [FUZZ / "kill_points.py"],
    "load": [ROOT / "tools" / "load_server.py"],
}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its servers end with it
    use_one_thread()
    sys.path.insert(0, str(FUZZ))
    import catalogue
    from engine import Campaign

    if options.replay:
        targets = [catalogue.kept_case(file) for file in options.replay]
    else:
        targets = catalogue.targets(options.only)
    if not targets and not any(name in PROGRAMS for name in options.only):
        raise SystemExit(f"attack.py: no target begins with {', '.join(options.only)}")
    catalogue.preload(targets)
    state = options.resume or options.state
    if options.resume:
        campaign = Campaign.from_json(targets, json.loads(options.resume.read_text()))
    else:
        campaign = Campaign(targets, options.seed)
    keep = Keeper(state)
    began = time.monotonic()
    seconds = QUICK_SECONDS if options.quick else options.seconds
    try:
        campaign.run(
            jobs=options.jobs,
            seconds=seconds,
            share=options.share,
            slice_seconds=slice_of(seconds),
            watch=keep,
        )
    finally:
        keep.write(campaign)
    report(campaign, time.monotonic() - began)
    failed = [name for name in chosen_programs(options) if not run_program(name)]
    return 1 if campaign.failed or failed else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2, help="workers at the same time")
    parser.add_argument("--seed", type=int, default=1, help="of all cases")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of each target")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS:g} seconds")
    parser.add_argument("--only", action="append", default=[], metavar="TARGET")
    parser.add_argument("--state", type=Path, default=Path("attack.json"), help="summary, in JSON")
    parser.add_argument("--resume", type=Path, metavar="STATE", help="go on with this summary")
    parser.add_argument(
        "--replay", type=Path, nargs="+", metavar="FILE", help="kept cases instead of new ones"
    )
    return parser.parse_args(arguments)


def use_one_thread() -> None:
    """Workers are forks, and threads do not survive one."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        if os.environ.get(name) != "1":
            os.environ[name] = "1"


def slice_of(seconds: float | None) -> float:
    """How long a target is at work before the next one: everybody has a turn in a short run."""
    return 3.0 if seconds is None else max(0.2, min(3.0, seconds / 200))


class Keeper:
    """Writes the summary now and then, so that a killed campaign can go on."""

    def __init__(self, path: Path):
        self.path = path
        self.written = 0.0

    def __call__(self, campaign) -> None:
        if time.monotonic() - self.written > 5:
            self.write(campaign)

    def write(self, campaign) -> None:
        self.written = time.monotonic()
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(campaign.to_json(), indent=1))
        os.replace(part, self.path)


def report(campaign, seconds: float) -> None:
    from engine import OUTCOMES

    print(f"{'target':42}{'cases':>10}{'per s':>8}" + "".join(f"{name:>9}" for name in OUTCOMES))
    kinds: dict[str, list[int]] = {}
    for name, tally in campaign.tallies.items():
        counts = [tally.counts[outcome] for outcome in OUTCOMES]
        speed = sum(counts) / tally.seconds if tally.seconds else 0
        print(f"{name:42}{sum(counts):10}{speed:8.0f}" + "".join(f"{n:9}" for n in counts))
        total = kinds.setdefault(campaign.targets[name].kind, [0] * len(OUTCOMES))
        kinds[campaign.targets[name].kind] = [a + b for a, b in zip(total, counts, strict=True)]
    print()
    for kind, counts in kinds.items():
        print(f"{'all ' + kind:42}{sum(counts):10}{'':8}" + "".join(f"{n:9}" for n in counts))
    for name, tally in campaign.tallies.items():
        for what, numbers in sorted(tally.failures.items(), key=lambda item: -len(item[1])):
            print(f"  {name}: {len(numbers)} x {what}, first case {numbers[0]}")
    print(f"\n{seconds / 60:.1f} minutes, seed {campaign.seed}, {campaign.failed} failed")


def chosen_programs(options: argparse.Namespace) -> list[str]:
    """All in a whole campaign; in a short one, or with --only, those that are named."""
    is_whole = not (options.only or options.quick or options.replay) and options.seconds is None
    return [name for name in PROGRAMS if is_whole or name in options.only]


def run_program(name: str) -> bool:
    program = PROGRAMS[name]
    if not program[0].exists():
        print(f"{name}: not here ({program[0].relative_to(ROOT)})")
        return True
    code = subprocess.run([sys.executable, *map(str, program)], cwd=ROOT).returncode
    print(f"{name}: {'held' if code == 0 else f'exit code {code}'}")
    return code == 0


if __name__ == "__main__":
    if importlib.util.find_spec("sublearn") is None:
        raise SystemExit("attack.py: sublearn must be installed in this Python")
    sys.exit(main(sys.argv[1:]))

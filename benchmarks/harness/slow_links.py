"""Dask workers behind slow links on one machine: namespaces of network, host and mounts, and tc.

Run as ``python slow_links.py setting.json`` inside a network namespace of its own, where it is
client and scheduler, makes a pair of interfaces to each worker's namespace, and prints the seconds
of a fit's worth of blocks. Nothing outside these namespaces changes, and they end with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path = [*sys.path[1:], str(Path(__file__).resolve().parents[1])]

from harness.many_machines import RESULT_BYTES, Link

__all__ = ["Setting", "can_limit_links", "run_emulated"]

_MEGABYTE = 2**20


@dataclass(frozen=True)
class Setting:
    """A run: machines behind links of so many megabits a second."""

    n_machines: int
    megabits: int
    megabytes: float  # of the arrays of the function
    n_blocks: int
    seconds: float  # of a block, in the mean

    @property
    def n_bytes(self) -> float:
        return self.megabytes * _MEGABYTE

    def link(self) -> Link:
        return Link(self.megabits * 125_000.0)

    def blocks(self) -> np.ndarray:
        """Seconds of each block, longest first."""
        shares = np.random.default_rng(0).uniform(0.5, 1.5, self.n_blocks)
        return np.sort(self.seconds * shares / shares.mean())[::-1]


def can_limit_links() -> bool:
    """Whether this process may make namespaces and limit links."""
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "ip", "tc"))):
        return False
    limit = _limit("l1", Setting(1, 10, 0.0, 0, 0.0))
    command = f"ip link add l1 type veth peer name l2 && {limit}"
    tried = subprocess.run(["unshare", "-n", "-m", "-u", "sh", "-c", command], capture_output=True)
    return tried.returncode == 0


def run_emulated(setting: Setting) -> float:
    """Seconds on the clock of one run."""
    command = ["unshare", "-n", "-m", sys.executable, __file__, json.dumps(asdict(setting))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.strip().split("\n")[-1])


def _sh(command: str) -> None:
    subprocess.run(["sh", "-ec", command], check=True)


def _limit(device: str, setting: Setting) -> str:
    return f"tc qdisc add dev {device} root tbf rate {setting.megabits}mbit burst 64kb latency 2s"


def _start_worker(k: int, port: int, setting: Setting, home: Path) -> subprocess.Popen[bytes]:
    """A worker in namespaces of its own, which does not see the client's folder."""
    private = home / f"private-{k}"
    private.mkdir()
    inside = (
        f"hostname machine-{k} && mount -t tmpfs none {home / 'client'} && ip link set lo up && "
        f"until ip link show w{k} >/dev/null 2>&1; do sleep 0.05; done; "
        f"ip addr add 10.77.{k}.2/24 dev w{k} && ip link set w{k} up && "
        f"{_limit(f'w{k}', setting)}; "
        f"exec {sys.executable} -m distributed.cli.dask_worker tcp://10.77.{k}.1:{port} --no-nanny "
        f"--nthreads 1 --no-dashboard --memory-limit 0 --local-directory {private}"
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(
        ["unshare", "-n", "-m", "-u", "sh", "-c", inside],
        env=os.environ | {"TMPDIR": str(private), "OMP_NUM_THREADS": "1"}, **quiet,
    )  # fmt: skip
    time.sleep(0.3)  # until it has left this namespace
    _sh(f"ip link add h{k} type veth peer name w{k} && ip link set w{k} netns {process.pid} && "
        f"ip addr add 10.77.{k}.1/24 dev h{k} && ip link set h{k} up && "
        f"{_limit(f'h{k}', setting)}")  # fmt: skip
    return process


def main() -> None:
    """One run, in the client's namespace."""
    from distributed import Client, LocalCluster

    from sublearn.distributed import cluster
    from sublearn.execution import Hints, map_blocks

    setting = Setting(**json.loads(sys.argv[1]))
    _sh("ip link set lo up && ip link add up0 type veth peer name up1 && "
        "ip addr add 10.76.0.1/24 dev up0 && ip link set up0 up")  # fmt: skip
    data = np.random.default_rng(0).integers(0, 255, int(setting.n_bytes), dtype=np.uint8)
    result = np.random.default_rng(1).bytes(RESULT_BYTES)

    def work(seconds: float) -> bytes:
        time.sleep(seconds + 0 * int(data[0]))
        return result

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "client").mkdir()
        with (
            LocalCluster(
                n_workers=0, host="0.0.0.0", dashboard_address=None, silence_logs=50
            ) as servers,
            Client(servers) as client,
        ):
            port = servers.scheduler.port
            workers = [_start_worker(k + 1, port, setting, home) for k in range(setting.n_machines)]
            try:
                client.wait_for_workers(setting.n_machines, timeout=120)
                with cluster(client, directory=home / "client"):
                    map_blocks(abs, range(4 * setting.n_machines))  # imports
                with cluster(client, directory=home / "client"):
                    clock = time.perf_counter()
                    map_blocks(work, list(setting.blocks()), hints=Hints(float))
                    seconds = time.perf_counter() - clock
            finally:
                for process in workers:
                    process.kill()
                    process.wait()
    print(seconds)


if __name__ == "__main__":
    main()

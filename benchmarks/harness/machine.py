"""Where, when and from which commit a measurement was taken."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

__all__ = ["commit", "group_seconds", "machine", "now"]

_REPOSITORY = Path(__file__).resolve().parents[2]


def machine() -> dict[str, Any]:
    """Hardware, system and how busy they were."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()),
    }


def commit() -> dict[str, Any]:
    """Commit of the working tree and whether it has uncommitted changes; None outside git."""
    revision = _git("rev-parse", "HEAD")
    return {"commit": revision, "modified": bool(_git("status", "--porcelain"))}


def now() -> str:
    """Date and time in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def group_seconds(group: int) -> float | None:
    """CPU seconds that the processes of a group have used so far, None where Linux is not."""
    if not Path("/proc/self/stat").exists():
        return None
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # What follows the name, which may hold blanks: state, parent, group, ...
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(_REPOSITORY), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None

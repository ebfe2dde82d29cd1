"""A PostgreSQL 15 of one's own, as the upstream of sources: started, crashed and started again on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

BINARIES = Path("/usr/lib/postgresql/15/bin")


class PrivatePostgres:
    """A cluster in a temporary folder, which ``remove`` deletes. Settings survive ``crash`` and ``start``."""

    def __init__(self) -> None:
        """Make it and start it. Raises subprocess.CalledProcessError, FileNotFoundError without server binaries."""
        self.folder = tempfile.mkdtemp(prefix="holdfast-upstream-")
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._data = f"{self.folder}/data"
        self._run(
            "initdb", "-D", self._data, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "-U", "postgres", "--no-sync"
        )  # fmt: skip
        self.start()

    @property
    def url(self) -> str:
        """Its database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it has recovered."""
        settings = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder, "shared_buffers": "16MB",
            "wal_level": "logical", "max_replication_slots": "10", "checkpoint_timeout": "30s", "fsync": "off",
        }  # fmt: skip
        options = f"-p {self.port} " + " ".join(f"-c {name}={value}" for name, value in settings.items())
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "-l", f"{self.folder}/log", "start")

    def crash(self) -> None:
        """End it as a crash of the machine would end it, but for what the kernel has not written."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def remove(self) -> None:
        """End it for good."""
        try:
            self.crash()
        except subprocess.CalledProcessError:
            print(f"the upstream in {self.folder} had ended")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(BINARIES / tool), *arguments]
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

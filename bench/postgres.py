"""A PostgreSQL server of one's own, in a temporary folder, reached through a Unix socket there.

With Debian's package `postgresql`, or any whose programs are on the path. It refuses to run as
root, so root starts it as `nobody`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

USER, PASSWORD = "grader", "sesame/@%"  # with what must be written as %XX in a URL
PLACES = "/usr/lib/postgresql/*/bin"


def programs() -> Path | None:
    """The folder of the server's programs, of the newest version; None where there is none."""
    found = [path.parent for path in Path("/").glob(f"{PLACES[1:]}/initdb")]
    beside = shutil.which("initdb")
    found += [Path(os.path.realpath(beside)).parent] if beside else []
    return max(found, key=lambda path: [int(n) for n in path.parts if n.isdigit()], default=None)


class Server:
    """A running server, `stop` and `start` it at will; as a context it goes away at the end."""

    def __init__(self):
        programs_ = programs()
        if programs_ is None:
            raise FileNotFoundError(f"no PostgreSQL here: neither {PLACES} nor initdb on the path")
        self.programs = programs_
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path is short
        self.other = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
        if self.other:
            import pwd

            nobody = pwd.getpwnam("nobody")
            self.other["group"] = nobody.pw_gid
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)  # in a folder that nobody else can enter
        self._run("initdb", "-D", "data", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync",
                  "--auth=scram-sha-256", "--pwfile=password")  # fmt: skip
        self.start()

    @property
    def running(self) -> bool:
        return (self.folder / "data/postmaster.pid").exists()

    def start(self) -> None:
        """Unless it runs."""
        if self.running:
            return
        options = f"-F -c listen_addresses='' -k {self.folder}"
        self._run("pg_ctl", "start", "-D", "data", "-l", "log", "-w", "-o", options)

    def stop(self) -> None:
        """At once, as in a crash: whoever is connected is cut off."""
        self._run("pg_ctl", "stop", "-D", "data", "-w", "-m", "immediate")

    def url(self, name: str, password: str = PASSWORD) -> str:
        """The URL of a new, empty database of that name, or of the one that is there."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), user=USER, password=PASSWORD, dbname="postgres", autocommit=True
        ) as connection:
            there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            if not there.fetchone():
                connection.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql://{USER}:{quote(password, safe='')}@/{name}?host={self.folder}"

    def close(self) -> None:
        if self.running:
            self.stop()
        shutil.rmtree(self.folder)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        log = self.folder / f"{program}.log"  # not a pipe: the server would keep it open
        with log.open("wb") as said:
            done = subprocess.run(command, cwd=self.folder, stdout=said, stderr=said, **self.other)
        if done.returncode:
            raise OSError(f"{program} failed: {log.read_text(errors='replace').strip()}")

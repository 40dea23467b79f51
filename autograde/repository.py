"""The public repository that `_config.yml` names, and what can be reached through it.

    repository:
      url: https://github.com/ORGANISATION/NAME
      branch: main         # unless you say otherwise
      path_to_book: ""     # the course's folder in the repository

Without it there is nothing to launch, and nothing here is called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

URL = re.compile(r"https://[\w.-]+(/[\w.-]+){2,}")
NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")


@dataclass(frozen=True)
class Repository:
    """url: without a slash at its end. folder: the course's, "" at the top of the repository."""

    url: str
    branch: str = "main"
    folder: str = ""

    @property
    def on_github(self) -> bool:
        return self.url.startswith("https://github.com/")

    def colab(self, path: str) -> str | None:
        """Where Colab opens the notebook at `path`; it can only from GitHub."""
        if not self.on_github:
            return None
        name = self.url.removeprefix("https://github.com/")
        place = quote(f"{name}/blob/{self.branch}/{self._inside(path)}")
        return f"https://colab.research.google.com/github/{place}"

    def binder(self, path: str) -> str:
        """Where Binder opens the notebook at `path`, with what `binder/` says installed."""
        name = self.url.removeprefix("https://github.com/")
        source = f"gh/{name}" if self.on_github else f"git/{quote(self.url, safe='')}"
        branch = quote(self.branch, safe="")
        return f"https://mybinder.org/v2/{source}/{branch}?labpath={quote(self._inside(path))}"

    def requirement(self, extra: str = "") -> str:
        """What pip installs the course's package from, with an extra such as "torch"."""
        name = f"no-peeking[{extra}]" if extra else "no-peeking"
        inside = f"#subdirectory={self.folder}" if self.folder else ""
        return f"{name} @ git+{self.url}@{self.branch}{inside}"

    def _inside(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder else path


def repository_of(root: Path) -> Repository | None:
    """The repository that `root/_config.yml` names; None where it names none.

    Raises
    ------
    ValueError: what it names is no address, branch or folder.
    """
    import yaml

    try:
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")) or {}
    except FileNotFoundError:  # a class's folder
        return None
    named = config.get("repository") or {}
    url = str(named.get("url") or "").removesuffix("/").removesuffix(".git")
    if not url:
        return None
    branch, folder = named.get("branch") or "main", str(named.get("path_to_book") or "").strip("/.")
    for what, value, form in (("url", url, URL), ("branch", branch, NAME),
                              ("path_to_book", folder or "-", NAME)):  # fmt: skip
        if not form.fullmatch(str(value)):
            raise ValueError(
                f"_config.yml: {value!r} cannot be the `{what}` of the repository; "
                "write it as in `url: https://github.com/organisation/name`"
            )
    return Repository(url, str(branch), folder)

"""Let JupyterLite's "Run All" go on where JupyterLab's does.

A check that fails raises an error, in a cell with the tag `raises-exception`. JupyterLab then asks
the kernel not to stop (`stop_on_error`). JupyterLite's kernels forget that, and what waits is
thrown away at any error (jupyterlite pull request 1671), so we mend its scripts after its build.
"""

from __future__ import annotations

import re
from pathlib import Path

from web.wheel import CannotBuild

MENDED = (
    (  # the kernel's answer says what it was asked for ...
        re.compile(r"const (\w+)=await this\.executeRequest\((\w+)\.content\),"),
        r"const \1={stop_on_error:\2.content.stop_on_error,"
        r"...await this.executeRequest(\2.content)},",
    ),
    (  # ... and what waits is thrown away only then
        re.compile(r'"execute_reply"===(\w+)\.header\.msg_type&&"error"===\1\.content\.status&&'),
        r"\g<0>!1!==\1.content.stop_on_error&&",
    ),
)


def go_on_where_asked(scripts: list[Path]) -> None:
    """Change these scripts of JupyterLite in place.

    Raises
    ------
    CannotBuild: they are written in another way. See whether this version needs it at all.
    """
    for old, new in MENDED:
        found = 0
        for path in scripts:
            text, count = old.subn(new, path.read_text(encoding="utf-8"))
            found += count
            if count:
                path.write_text(text, encoding="utf-8")
        if not found:
            raise CannotBuild(f"JupyterLite is not what {__name__} mends: no {old.pattern}")

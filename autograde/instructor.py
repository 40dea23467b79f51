"""`autograde collect | report | export`: what an instructor does before and after grading."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from autograde.runner import CannotRun


def add_commands(commands: Any) -> None:
    """Add them to the command line's parsers."""
    collect = _command(commands, "collect", _collect, "put what was handed in where grading looks")
    collect.add_argument("sources", type=Path, nargs="+", metavar="SOURCE",
                         help="a folder, a zip file or a file, as it was downloaded")  # fmt: skip
    _roster(collect)
    collect.add_argument("--pattern", default="", metavar="REGEX",
                         help="how files are named, as in nbgrader zip_collect")  # fmt: skip
    collect.add_argument("--timezone", metavar="NAME", help="of times; default: this machine's")
    collect.add_argument("--dry-run", action="store_true", help="say what would be done")

    report = _command(commands, "report", _report, "write a page on how the class did")
    report.add_argument("--out", type=Path, metavar="FILE", help="default: reports/ASSIGNMENT.html")
    report.add_argument("--anonymous", action="store_true", help="name nobody")

    export = _command(commands, "export", _export, "write the grades for Canvas, Moodle, or as CSV")
    export.add_argument("--format", choices=("csv", "canvas", "moodle"), default="csv")
    _roster(export)
    export.add_argument("--out", type=Path, metavar="FILE", help="default: reports/")
    export.add_argument("--out-of", type=float, metavar="POINTS", help="convert to this scale")
    export.add_argument("--column", default="", help="the assignment's name there")
    export.add_argument("--missing-as-zero", action="store_true",
                        help="0 for those who handed nothing in")  # fmt: skip


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text)
    parser.add_argument("assignment", help="such as 03-causal-mask")
    parser.add_argument("--root", type=Path, default=Path("."), help="the course's folder")
    parser.set_defaults(run=_guarded(run))
    return parser


def _roster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--roster", type=Path, metavar="CSV",
                        help="the class: Canvas's gradebook, Moodle's grading worksheet, "
                        "or any list with a column `student`")  # fmt: skip


def _guarded(run: Any) -> Any:
    """Whatever is wrong with the course, the list or the disk is said in a sentence."""

    def guarded(options: argparse.Namespace) -> int:
        try:
            from autograde.grading.accidents import GradingError, said
            from autograde.grading.roster import BadRoster
        except ImportError as error:
            raise CannotRun(f"{error}; pip install -r requirements.txt has all it needs") from None
        try:
            return run(options)
        except (GradingError, BadRoster, OSError) as error:
            raise CannotRun(said(error, options.root)) from None

    return guarded


def _setting(options: argparse.Namespace) -> tuple[Any, Any]:
    """(the course, its list of students)"""
    from autograde.grading.course import Course
    from autograde.grading.roster import Roster, read_roster

    roster = getattr(options, "roster", None)
    return Course(options.root.resolve()), read_roster(roster) if roster else Roster()


def _collect(options: argparse.Namespace) -> int:
    import re
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    from autograde.grading.collect import KINDS, collect

    course, roster = _setting(options)
    try:
        zone = ZoneInfo(options.timezone) if options.timezone else None
        re.compile(options.pattern)
    except (ZoneInfoNotFoundError, ValueError, re.error) as error:
        raise CannotRun(f"--timezone or --pattern: {error}") from None
    done = collect(
        course,
        options.assignment,
        options.sources,
        roster,
        options.pattern,
        zone,
        options.dry_run,
    )
    for remark in done.remarks:
        print(f"{remark.what:<10} {_shown(remark.who):<24} {_shown(remark.text)}".rstrip())
    kinds = [kind for kind in KINDS if kind not in ("note", "nothing") and done.count(kind)]
    counts = ", ".join(f"{done.count(kind)} {kind}" for kind in kinds)
    print(f"{options.assignment}: {counts or 'nothing'}", end="")
    print("; nothing was changed (--dry-run)" if options.dry_run else "")
    if done.count("replaced") and not options.dry_run:
        print(f"what was replaced is kept in {course.folder('submitted') / '.collected/replaced'}")
    return 0 if done.fine else 1


def _report(options: argparse.Namespace) -> int:
    from autograde.grading.classpage import page
    from autograde.grading.classreport import as_csv, class_report
    from autograde.grading.gradesheet import write_whole
    from autograde.grading.standing import class_standing

    course, _ = _setting(options)
    found = class_report(class_standing(course, options.assignment))
    out = options.out or course.root / "reports" / f"{options.assignment}.html"
    write_whole(out, page(found, options.anonymous))
    write_whole(out.with_suffix(".csv"), as_csv(found, options.anonymous))
    print(f"{found.examined} submissions, {len(found.mistakes)} misconceptions: {out}")
    print(f"the same as a table: {out.with_suffix('.csv')}")
    return 0


def _export(options: argparse.Namespace) -> int:
    from autograde.grading.exports import Wanted, default_path, export
    from autograde.grading.gradesheet import write_whole

    course, roster = _setting(options)
    if options.out_of is not None and not options.out_of > 0:
        raise CannotRun("--out-of wants more than 0 points")
    wanted = Wanted(options.format, roster, options.out_of, options.column, options.missing_as_zero)
    made = export(course, options.assignment, wanted)
    out = options.out or default_path(course, options.assignment, options.format)
    write_whole(out, made.text)
    for text in made.findings:
        print(f"left out   {_shown(text)}")
    for text in made.notes:
        print(f"note       {_shown(text)}")
    print(f"{made.grades} grades: {out}")
    return 1 if made.findings else 0


def _shown(text: str) -> str:
    """A text from outside that cannot upset the terminal."""
    known = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    text = known.decode(sys.stdout.encoding or "utf-8")
    return "".join(c if c.isprintable() else "�" for c in text)

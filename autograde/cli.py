"""The command line: `autograde check | build | collect | grade | report | export | ...`.

Exit status: 0 all well, 1 points missed or findings, 2 could not run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from autograde.checking import CHECK_SEEDS, GRADE_SEEDS
from autograde.examination import examine
from autograde.exercise import Exercise, chapters, exercises, find
from autograde.host import mark, notebook_cells
from autograde.instructor import add_commands
from autograde.report import Report, report
from autograde.runner import CannotRun, StudentFile


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except CannotRun as error:
        print(f"autograde: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("autograde: stopped", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograde", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="check the functions of a notebook or a .py file")
    check.add_argument("file", type=Path, help="a completed notebook, or a .py file")
    check.add_argument("--json", action="store_true", help="print data instead of text")
    check.add_argument("--only", metavar="NAME", action="append", help="check this function")
    check.add_argument("--chapter", help="check every function of this chapter")
    check.set_defaults(run=_check)

    build = commands.add_parser("build", help="make the notebooks from the text of solutions/")
    build.add_argument("chapters", nargs="*", metavar="CHAPTER", help="default: all")
    build.add_argument("--root", type=Path, default=Path("."), help="the course's folder")
    build.set_defaults(run=_build)

    grade = commands.add_parser("grade", help="grade every submission of an assignment")
    grade.add_argument("assignment", help="such as 03-causal-mask")
    grade.add_argument("--only", metavar="STUDENT", action="append", help="grade this student")
    grade.add_argument("--root", type=Path, default=Path("."), help="the course's folder")
    grade.add_argument("--force", action="store_true", help="grade again what is graded")
    grade.add_argument(
        "--jobs", type=int, metavar="N", help="processes that grade (default: one a core)"
    )
    grade.add_argument(
        "--scheduler", metavar="ADDRESS", help="grade on the workers of dask.distributed instead"
    )
    grade.add_argument(
        "--unsandboxed", action="store_true", help="let submissions do whatever you may do"
    )
    grade.set_defaults(run=_grade)

    sample = commands.add_parser("sample-class", help="make a class of odd submissions, grade it")
    sample.add_argument("--root", type=Path, default=Path("."), help="the course's folder")
    sample.add_argument("--into", type=Path, default=Path("_build/sample-class"))
    sample.set_defaults(run=_sample_class)

    doctor = commands.add_parser("doctor", help="say what this machine can do, and what to do")
    doctor.set_defaults(run=_doctor)

    add_commands(commands)

    audit = commands.add_parser("audit", help="examine the checks: do they reject what is wrong?")
    audit.add_argument("functions", nargs="*", metavar="FUNCTION", help="default: all")
    audit.add_argument("--chapter", help="every function of this chapter")
    audit.add_argument("--no-mutants", action="store_true", help="only the banks of answers")
    audit.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    audit.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write what was found there; what it says of other functions stays",
    )
    audit.set_defaults(run=_audit)
    return parser


def _check(options: argparse.Namespace) -> int:
    try:
        found = check_file(options.file, options.only, options.chapter)
    except CannotRun as error:
        if options.json:
            print(json.dumps({"file": str(options.file), "passed": False, "error": str(error)}))
        raise
    problems, reports = found
    # A notebook may hold trials that fail; a file that fails is not well.
    passed = all(r.passed for r in reports) and not (problems and options.file.suffix == ".py")
    if options.json:
        data = {"file": str(options.file), "passed": passed, "problems": problems}
        data["functions"] = {r.name: r.data() for r in reports}
        print(json.dumps(data, indent=1))
    else:
        for problem in (p for p in problems if "NotImplementedError" not in p):
            print(f"while the file ran: {problem}")
        for each in reports:
            print(each.text(), end="\n\n")
        points = sum(r.examination.points for r in reports)
        most = sum(r.examination.exercise.points for r in reports)
        print(f"{sum(r.passed for r in reports)} of {len(reports)} functions are right; ", end="")
        print(f"{points} of {most} points")
    return 0 if passed else 1


def check_file(
    path: Path, only: list[str] | None = None, chapter: str | None = None
) -> tuple[list[str], list[Report]]:
    """Run a file and examine its functions: (what failed while it ran, the reports).

    only: names of exercises; chapter: all of that chapter's. By default those that the file
    defines, and for a notebook those that it asks for.
    """
    if not path.is_file():
        raise CannotRun(f"there is no file {path}")
    if path.suffix not in (".py", ".ipynb"):
        raise CannotRun(f"{path.name}: a notebook (.ipynb) or a .py file is wanted")
    wanted = _wanted(only, chapter)
    with StudentFile(path) as student:
        asked, given = _marked(path)
        there = {*student.names, *asked} - given
        asked = wanted or [e for e in exercises() if e.name in there]
        if not asked:
            known = ", ".join(e.name for e in exercises())
            failed = "; ".join(student.problems)
            raise CannotRun(
                (f"{failed}. So " if failed else "")
                + f"{path.name} defines no function of the course ({known})"
            )
        seeds = CHECK_SEEDS + GRADE_SEEDS
        reports: list[Report] = []
        for exercise in asked:
            wrong = {r.name for r in reports if not r.passed}
            examination = examine(exercise, student.function(exercise.name), seeds)
            reports.append(report(examination, wrong))
        return student.problems, reports


def _wanted(only: list[str] | None, chapter: str | None) -> list[Exercise]:
    try:
        wanted = [find(name) for name in only or []]
    except LookupError as error:
        raise CannotRun(str(error)) from None
    if chapter is not None:
        if chapter not in chapters():
            raise CannotRun(f"no chapter {chapter!r}; there are {', '.join(chapters())}")
        wanted += chapters()[chapter]
    return wanted


def _marked(path: Path) -> tuple[set[str], set[str]]:
    """The exercises that a notebook asks for, and those that it gives, by nbgrader's marks."""
    if path.suffix != ".ipynb":
        return set(), set()
    cells = notebook_cells(path.name, path.read_text(encoding="utf-8-sig"))
    marks = [mark(cell) for cell in cells]
    asked = {str(found.get("grade_id")) for found in marks if found.get("solution")}
    locked = {str(found.get("grade_id")) for found in marks if found.get("locked")}
    return asked, {name.removeprefix("given_") for name in locked if name.startswith("given_")}


def _build(options: argparse.Namespace) -> int:
    from autograde.build import BuildError, build

    try:
        changed = build(options.root, options.chapters or None)
    except BuildError as error:
        raise CannotRun(str(error)) from None
    for path in changed:
        print(f"wrote {path}")
    if not changed:
        print("every notebook is up to date")
    return 0


def _grade(options: argparse.Namespace) -> int:
    from autograde.grading.accidents import GradingError, said
    from autograde.grading.assignment import grade_assignment

    try:
        results = grade_assignment(
            options.assignment,
            options.root,
            options.only,
            options.force,
            sandboxed=False if options.unsandboxed else None,
            jobs=options.jobs,
            scheduler=options.scheduler,
        )
    except (GradingError, OSError) as error:
        raise CannotRun(said(error, options.root)) from None
    _summary(results, options.root)
    return 0 if all(result.status == "graded" for result in results) else 1


def _sample_class(options: argparse.Namespace) -> int:
    from autograde.build import BuildError
    from autograde.grading.accidents import GradingError, said
    from autograde.grading.assignment import grade_assignment
    from autograde.grading.doctor import why_no_sandbox
    from autograde.grading.sample_class import ASSIGNMENT, make_sample_class, surprises

    if reason := why_no_sandbox():
        print(f"The sample class, whose code is the course's own, runs without a sandbox: {reason}")
    try:
        make_sample_class(options.root, options.into)
        results = grade_assignment(ASSIGNMENT, options.into, sandboxed=not reason)
    except (BuildError, GradingError, OSError) as error:
        raise CannotRun(said(error, options.into)) from None
    _summary(results, options.into)
    told = surprises(results)
    for sentence in told:
        print(f"not as it should be: {sentence}", file=sys.stderr)
    return 1 if told else 0


def _doctor(options: argparse.Namespace) -> int:
    try:
        from autograde.grading.doctor import examine_machine
    except ImportError as error:
        raise CannotRun(f"{error}; pip install -r requirements.txt has all it needs") from None

    found = examine_machine()
    for finding in found:
        print(finding.text())
    return 0 if all(finding.fine for finding in found if finding.needed) else 1


def _audit(options: argparse.Namespace) -> int:
    try:
        from autograde.audit.findings import audit, text
        from autograde.grading.gradesheet import write_whole
    except ImportError as error:
        raise CannotRun(f"{error}; pip install -r requirements.txt has all it needs") from None

    wanted = _wanted(options.functions, options.chapter) or list(exercises())
    found = audit(wanted, options.jobs, not options.no_mutants, _progress)
    print(text(found))
    if options.json:
        write_whole(options.json, json.dumps(_merged(options.json, found), indent=1) + "\n")
    return 1 if any(True for each in found for _ in each.faults()) else 0


def _merged(path: Path, found: list) -> list[dict]:
    """What was found, in the order of the course, with what the file says of other exercises."""
    known = json.loads(path.read_text()) if path.is_file() else []
    by_name: dict[str, dict] = {}
    for each in [*known, *(each.data() for each in found)]:
        by_name.setdefault(each["exercise"], {}).update(each)
    return [by_name[exercise.name] for exercise in exercises() if exercise.name in by_name]


def _progress(done: int, of: int) -> None:
    """How far it is, on standard error: in place on a terminal, else a line for each tenth."""
    if sys.stderr.isatty():
        print(f"\r{done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done == of or done * 10 // of > (done - 1) * 10 // of:
        print(f"{done} of {of}", file=sys.stderr, flush=True)


def _summary(results: list, root: Path) -> None:
    """Who could not be graded is told again at the end, and where everything lies."""
    failed = [result.student for result in results if result.status != "graded"]
    print(f"{len(results) - len(failed)} of {len(results)} submissions graded", end="")
    print(f"; not: {', '.join(failed)}" if failed else "")
    print(f"grades: {root / 'grades.csv'}; feedback pages: {root / 'feedback'}")


def entry() -> None:
    sys.exit(main())


if __name__ == "__main__":
    entry()

"""Settings of nbgrader: `nbgrader autograde` in this folder grades as `autograde grade` does."""

from autograde.grading.plugin import configure

c = get_config()  # nbgrader provides it

c.CourseDirectory.course_id = "no-peeking"

# The gradebook is the file gradebook.db in this folder. Or a PostgreSQL server has it:
# c.CourseDirectory.db_url = "postgresql://grader@db.example.org/spring"

# solutions/ holds the exercises' source, exercises/ what students get. (`solution_directory`
# is another thing: nbgrader's folder of graded sample solutions. It keeps its default.)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

# nbgrader copies whatever else lies in an assignment's folder. The text that notebooks are
# built from holds model answers, so it must never come along.
c.CourseDirectory.ignore = [
    "*.md",
    "*.pyc",
    "*.tmp",
    "*~",
    ".*",
    "__pycache__",
    "feedback",
]

# Judge submissions in the grader's process, and run their code in a sandbox.
configure(c)

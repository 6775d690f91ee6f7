"""The tables [[questions]] of a campaign file: what is asked in a survey, in the order of the tables.

A question may state the standard error that is wanted for it; then all of them do, and together they are the goal. The
column of its answers is called as the question is, unless ``column`` says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushbid.allocation.goals import Accuracy
from hushbid.common.arrays import as_bounds
from hushbid.errors import InputError
from hushbid.purchase.toml_sections import Section, is_number, top_of
from hushbid.questions import QUESTIONS, Choice, Number, Question, as_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is asked, and where the answers are."""

    questions: tuple[Question, ...]
    """The questions, in their order."""

    columns: tuple[str, ...]
    """The column of each question's answers."""

    goal: Accuracy | None
    """The standard errors that the questions state; None if they state none."""


def read_survey(top: Section) -> Survey | None:
    """The survey that a file asks for; None if it asks for one number, or if the survey is wrong."""
    tables = top.raw("questions")
    if not top.given("questions"):
        return None
    if not isinstance(tables, list) or not tables or not all(isinstance(one, Mapping) for one in tables):
        top.wrong("questions", "tables, one for each question: [[questions]]")
        return None
    before = len(top.problems)
    found, columns, targets = [], [], []
    for place, values in enumerate(tables, start=1):
        section = Section(values, top.field(f"questions.{place}"), top.problems)
        question = _question(section)
        targets.append(section.number("standard_error", open_low=True))
        columns.append(section.text("column", default="" if question is None else question.name))
        section.finish()
        found.append(question)
    questions = tuple(one for one in found if one is not None)
    if len(top.problems) > before:
        return None
    try:
        as_questions(questions)
    except InputError as problem:
        top.problems.add("questions", str(problem).removeprefix("questions "))
        return None
    goal = _goal(top, targets)
    if len(top.problems) > before:
        return None
    return Survey(questions=questions, columns=tuple(columns), goal=goal)


def _goal(top: Section, targets: list[float | None]) -> Accuracy | None:
    """Either every question states a standard error, or none does."""
    stated = [target for target in targets if target is not None]
    if stated and len(stated) < len(targets):
        place = targets.index(None) + 1
        top.problems.add(
            f"questions.{place}", "must state a standard_error as other questions do, or none of them may."
        )
        return None
    return Accuracy(tuple(stated)) if stated else None


def _question(section: Section) -> Question | None:
    """One question; None if it is wrong."""
    before = len(section.problems)
    kind = section.choice("kind", tuple(QUESTIONS), needed=True)
    shared: dict[str, Any] = {
        "name": section.text("name", needed=True),
        "importance": section.number("importance", default=1.0, low=1e-6, high=1e6),
    }
    if kind == Number.kind:
        shared |= {"bounds": read_bounds(section), "variance": section.number("variance", open_low=True)}
        shared |= {"unit": section.text("unit")}
    if kind == Choice.kind:
        shared["answers"] = _answers(section)
    if len(section.problems) > before:
        return None
    try:
        return QUESTIONS[kind](**shared)
    except InputError as problem:
        field = problem.field if problem.field in shared else "name"
        section.problems.add(section.field(str(field)), str(problem).removeprefix(f"{field} "))
        return None


def _answers(section: Section) -> list[str]:
    value = section.raw("answers")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    section.wrong("answers", 'a list of texts: ["yes", "no", "no answer"]')
    return []


def read_bounds(section: Section) -> tuple[float, float] | None:
    """Two numbers, the smaller first."""
    value = section.raw("bounds")
    if isinstance(value, list) and len(value) == 2 and all(is_number(one) for one in value) and value[0] < value[1]:
        try:
            return as_bounds(value)
        except InputError as problem:
            section.problems.add(section.field("bounds"), str(problem).removeprefix(f"{problem.field} "))
            return None
    section.wrong("bounds", "two numbers, the smaller first: [0, 10]")
    return None


def survey_in(path: Path) -> Survey:
    """The survey in a TOML file, of which nothing but its questions is read."""
    top = top_of(path)
    found = read_survey(top)
    top.problems.refuse()
    if found is None:
        raise InputError(f"{path} must hold tables [[questions]], and has none.", field="questions")
    return found

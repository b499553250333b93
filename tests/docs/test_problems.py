"""The page of common problems: each is answered, and the rules that answer it find it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsmigrate.docs import problems
from dsmigrate.docs.problems import Problem, Shown
from dsmigrate.document import parse
from dsmigrate.knowledge import Consumer
from dsmigrate.migration.catalogue import every_idea
from dsmigrate.rules import Facts, Settings, check, every_rule

PROBLEMS = problems.problems()
SHOWN = [
    pytest.param(problem, shown, id=f"{problem.number}-{shown.rule}") for problem in PROBLEMS for shown in problem.shown
]


@pytest.mark.parametrize(("problem", "shown"), SHOWN)
def test_the_rule_finds_the_problem_in_its_config(problem: Problem, shown: Shown) -> None:
    facts = Facts(world_size=shown.world_size, parameters=shown.parameters, hardware=shown.hardware)
    settings = Settings(version=shown.version, consumer=Consumer(shown.consumer), facts=facts)
    found = [finding.code for finding in check(parse(shown.config), settings)]
    assert shown.rule in found, problem.symptom


def test_rules_and_problems_name_each_other() -> None:
    said = {(number, rule.code) for rule in every_rule() for number in rule.pains}
    assert said == {(problem.number, shown.rule) for problem in PROBLEMS for shown in problem.shown}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: str(problem.number))
def test_a_problem_is_answered_or_says_why_not(problem: Problem) -> None:
    assert problem.symptom
    assert problem.cause.endswith(".")
    assert problems.answering(problem, every_rule()) or problem.without_rule.endswith(".")
    assert {idea.code for idea in every_idea()} >= set(problem.codes)
    assert problem.threads
    for thread in problem.threads:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread)


def test_numbers_are_used_once() -> None:
    assert [problem.number for problem in PROBLEMS] == list(range(1, len(PROBLEMS) + 1))


def test_links_of_the_page_lead_somewhere() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = problems.page(every_rule())
    assert page.startswith(f"{problems.MARK}\n")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page) if not link.startswith("https://github.com/")]
    assert len(links) > len(PROBLEMS)
    assert [link for link in links if not (docs / link).is_file()] == []

from __future__ import annotations

from textwrap import dedent

import pytest

from dsmigrate.derivation.texts import texts


def said(source: str) -> list[tuple[str, str]]:
    return [(found.kind, found.text) for found in texts(dedent(source))]


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ("raise ValueError('the stage is wrong here')", "ValueError", "the stage is wrong here"),
        ("raise errors.StageError(f'stage {stage:d} is not {wanted!r} as wanted')", "StageError",
         "stage {} is not {} as wanted"),
        ("assert stage < 4, 'the stage %d is above %s' % (stage, most)", "AssertionError",
         "the stage {} is above {}"),
        ("raise ValueError('the stage {0} is above {most}, see {{this}}'.format(1, most=3))", "ValueError",
         "the stage {} is above {}, see {this}"),
        ("logger.warning('the stage ' + name + ' is wrong\\n    for this model')", "warning",
         "the stage {} is wrong for this model"),
        ("logger.info('%s stages of %5.1f GB were found', many, size)", "info", "{} stages of {} GB were found"),
        ("warnings.warn('100%% of the stages are wrong' % ())", "warn", "100% of the stages are wrong"),
        ("message = f'the stage {x} is wrong'\nraise ValueError(message)", "ValueError", "the stage {} is wrong"),
        ("raise ValueError(f'the stages {a} {b} are both wrong')", "ValueError", "the stages {} are both wrong"),
        ("raise ValueError('the stage is {self.stage} and wrong')", "ValueError",
         "the stage is {self.stage} and wrong"),
    ],
)  # fmt: skip
def test_a_text_is_told_with_its_places(source: str, kind: str, text: str) -> None:
    assert said(source) == [(kind, text)]


def test_both_sides_of_a_choice_are_told() -> None:
    source = "raise ValueError('the stage ' + ('is too high' if high else 'is too low'))"
    assert [text for _, text in said(source)] == ["the stage is too high", "the stage is too low"]


def test_a_name_is_that_of_the_function_it_is_assigned_in() -> None:
    source = """
        def one():
            message = "the first stage is wrong"
            raise ValueError(message)

        def two():
            message = "the second stage is wrong"
            logger.error(message)
        """
    assert sorted(said(source)) == [
        ("ValueError", "the first stage is wrong"),
        ("error", "the second stage is wrong"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError(message)",
        "raise ValueError(f'{stage}: {wrong}')",
        "raise ValueError('wrong')",
        "x = 'the stage is wrong here'",
        "check('the stage is wrong here')",
        "raise",
        "assert stage",
    ],
)
def test_what_says_nothing_that_could_be_known_again_is_left_out(source: str) -> None:
    assert said(source) == []

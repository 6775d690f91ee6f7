"""The estimates in full: how questions were asked, what was drawn, every error, and what makes them uncertain."""

import math
from dataclasses import dataclass

from hushbid.common.numbers import with_unit
from hushbid.languages import noted
from hushbid.report import strata_table
from hushbid.report.answers import AnswerFacts, answer_facts, result_rows
from hushbid.report.language import number, percent, say
from hushbid.report.material import Material, noise_share
from hushbid.report.suppression import coarse, few_missing
from hushbid.report.svg import Chart, Part, Table, divided_bar

ANCHOR, TITLE = "estimate", noted("The estimate")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateFacts:
    """The estimates and how far off they may be."""

    answers: tuple[AnswerFacts, ...]
    """What was found for each question, or is expected; one number is one question."""

    survey: bool
    """Whether questions were asked; if not, one number."""

    level: float
    """How sure an interval is."""

    standard_error: float
    """Root mean squared error, if price and datum are unrelated; of a survey that of all questions together."""

    worst_standard_error: float
    """The same at worst, if they are related as closely as was allowed for."""

    noise_share: float
    """The part of the squared error that is noise added for privacy, or false answers by coin; the rest comes from
    asking finitely many."""

    dropped_out: int | None
    """How many people who were bought from did not deliver; None if some did not, but too few to be counted."""

    by_coin: bool
    """Whether one yes/no question was answered by a coin on everybody's device, instead of adding noise."""

    strata: strata_table.StrataFacts | None
    """What is estimated of strata; None where there are none."""

    @property
    def released(self) -> bool:
        """Whether there is an estimate."""
        return any(one.values for one in self.answers)


def facts_of(material: Material) -> EstimateFacts:
    """The estimates, rounded coarsely where few people are behind them."""
    release, error, bought_from = material.release, material.error, material.fewest
    missing = 0 if release is None else len(release.dropped_out)
    return EstimateFacts(
        answers=answer_facts(material),
        survey=material.outcome.market.survey is not None,
        level=material.level,
        standard_error=math.inf if error is None else coarse(math.sqrt(error.mse), bought_from),
        worst_standard_error=math.inf if error is None else coarse(math.sqrt(error.worst_mse), bought_from),
        noise_share=noise_share(material.outcome, error, release),
        dropped_out=None if few_missing(missing) else missing,
        by_coin=material.outcome.market.strategy.response,
        strata=strata_table.strata_facts(material),
    )


def drawn_table(facts: EstimateFacts) -> Table:
    """What was drawn, which may lie outside of the range, with the interval by normal approximation."""
    return Table(
        head=(say("Estimate of"), say("As it was drawn"), say("From, by normal approximation"), say("To")),
        rows=tuple(
            (f"{one.name}: {row.name}" if one.answers else row.name, row.drawn, *row.normal)
            for one in facts.answers
            for row in result_rows(one)
        ),
    )


def errors_table(facts: EstimateFacts) -> Table:
    """How each question was asked, and its errors."""
    related = any(one.worst_standard_error > one.standard_error for one in facts.answers)
    worst = (say("At worst"),) if related else ()
    return Table(
        head=(say("Question"), say("Asked"), say("Standard error"), *worst),
        rows=tuple(
            (
                one.name,
                one.asked,
                with_unit(number(one.standard_error), one.error_unit),
                *((with_unit(number(one.worst_standard_error), one.error_unit),) if related else ()),
            )
            for one in facts.answers
        ),
    )


def sources(facts: EstimateFacts) -> list[Part]:
    """Where the uncertainty comes from."""
    noise, chance = facts.noise_share, 1.0 - facts.noise_share
    private = say("False answers by coin, for privacy") if facts.by_coin else say("Noise, added for privacy")
    return [
        Part(private, noise, "s1", percent(noise)),
        Part(say("Chance, from asking only some people"), chance, "s2", percent(chance)),
    ]


def sources_chart(facts: EstimateFacts) -> Chart:
    """The squared error, divided."""
    noise, chance = sources(facts)
    words = {"noise": noise.words, "chance": chance.words}
    return Chart(
        name="uncertainty",
        title=say("Where the uncertainty comes from"),
        description=say(
            "Of the squared error, {noise} is from false answers by coin, for privacy, and {chance} is chance.", **words
        )
        if facts.by_coin
        else say("Of the squared error, {noise} is noise added for privacy and {chance} is chance.", **words),
        draw=lambda width: divided_bar([noise, chance], width),
    )

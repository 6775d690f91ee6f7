"""What no solver takes, in one sentence each: direct calls and markets are refused with the same words.

The table of all refusals is `hushbid.mechanism.combinations`, which also knows what a market states and a problem does
not: its rows about these problems take field and sentence from here.
"""

from dataclasses import dataclass

from hushbid.errors import InputError


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A kind of problem that is refused."""

    field: str  # the argument that the sentence is about
    sentence: str  # what is wrong, why, and what to do

    def error(self) -> InputError:
        """Return what to raise."""
        return InputError(self.sentence, field=self.field)


LOCAL_BUDGET = Unsolved(
    "goal",
    "a budget cannot be the goal in the local setting: there a person who asks more can be bought more from, so no"
    " payment makes the truth their best bid; state a standard_error or a buyer_weight, or choose the central setting.",
)
NOT_CLOSED = Unsolved(
    "goal",
    "the cheapest way to this standard_error in the local setting was not found: how to divide the error among these"
    " strata takes too many steps; state a buyer_weight, or choose the central setting.",
)
LOCAL_CAPS = Unsolved(
    "max_privacy_loss",
    "max_privacy_loss must be one number in the local setting: with one per person the optimum is NP-hard to find.",
)
LOCAL_VARIANCES = Unsolved(
    "variance",
    "variance must be one number in the local setting: with one per person the optimum is NP-hard to find.",
)
CAPPED_STRATA_BUDGET = Unsolved(
    "max_loss",
    "with strata and a Budget max_loss must be infinite: under caps a higher cost may raise a loss there.",
)
BY_RESPONSE = (
    " cannot be stated where a single yes/no question is asked in the local setting: it is answered by randomised"
    " response, for which this has not been proved; ask it as a number from 0 to 1, to which devices add Laplace"
    " noise, or choose the central setting."
)

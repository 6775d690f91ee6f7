"""Sentences that follow from a code: a state, a step, a field, or why something was refused.

Each code is worded once, in English here and in every catalogue of translations.

`consent`       what the consent page promises, sentence by sentence
`participants`  what participants and strangers are told
`staff`         what analysts and auditors are told
`refusals`      why something is refused
"""

from hushbid.languages import Wording
from hushbid.server.pages.codes import consent, participants, refusals, staff

CODES: dict[str, Wording] = {**consent.CODES, **participants.CODES, **staff.CODES, **refusals.CODES}
"""The sentence of every code, with its context where one English text has several translations."""

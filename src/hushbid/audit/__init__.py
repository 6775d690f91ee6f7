"""Attacks on the library's own claims, for anybody to run: on incentives, privacy and accuracy.

Every check reports what it found, how many samples it took and what it could have found. "Not rejected" is never
"proved". In reading order:

- `incentives`: does anybody gain by a misreport, of a price or a limit, or lose by joining?
- `incentive_report`: what that attack found
- `targets`: what an attacker sees of a number, a survey or randomised response, and what noise it should have
- `privacy`: does the output betray more than was promised?
- `accuracy`: are error and interval as stated?
- `coalitions`: what several people, or one under several names, could gain together, which nothing promises against
- `suite`: which of these to run on a decided campaign, in sizes that fit it
"""

from hushbid.audit.accuracy import AccuracyCheck, check_questions
from hushbid.audit.coalitions import Collusion, SeveralIdentities, collusion, several_identities
from hushbid.audit.incentive_report import IncentiveReport
from hushbid.audit.incentives import check_incentives
from hushbid.audit.privacy import PrivacyAudit, check_privacy
from hushbid.audit.suite import audits_of

__all__ = [
    "AccuracyCheck",
    "Collusion",
    "IncentiveReport",
    "PrivacyAudit",
    "SeveralIdentities",
    "audits_of",
    "check_incentives",
    "check_privacy",
    "check_questions",
    "collusion",
    "several_identities",
]

"""Attacks on the library's own claims, for anybody to run: on incentives, privacy and accuracy.

Every check reports what it found, how many samples it took and what it could have found. "Not rejected" is never
"proved". In reading order:

- `incentives`: does anybody gain by a misreport, of a price or a limit, or lose by joining?
- `incentive_report`: what that attack found
- `privacy`: does the output betray more than was promised?
- `accuracy`: are error and interval as stated?
- `survey`: the attacks on privacy and accuracy where several questions were asked
- `coin`: the attack on the privacy of an answer to a single yes/no question, where a coin decides whether it is true
- `coalitions`: what several people, or one under several names, could gain together, which nothing promises against.
- `suite`: which of the first three to run on a decided campaign, in sizes that fit it.
"""

from hushbid.audit.accuracy import AccuracyCheck, check_accuracy
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
    "check_accuracy",
    "check_incentives",
    "check_privacy",
    "collusion",
    "several_identities",
]

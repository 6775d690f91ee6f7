"""Attacks on the library's own claims, for anybody to run: on incentives, privacy and accuracy.

Every check reports what it found, how many samples it took and what it could have found. "Not rejected" is never
"proved".
"""

from hushbid.audit.accuracy import AccuracyCheck, check_accuracy
from hushbid.audit.attacks import Collusion, SeveralIdentities, collusion, several_identities
from hushbid.audit.incentives import IncentiveReport, check_incentives
from hushbid.audit.privacy import PrivacyAudit, check_privacy

__all__ = [
    "AccuracyCheck",
    "Collusion",
    "IncentiveReport",
    "PrivacyAudit",
    "SeveralIdentities",
    "check_accuracy",
    "check_incentives",
    "check_privacy",
    "collusion",
    "several_identities",
]

"""The record of a campaign, and its verification: what was promised, paid and released, checked without the data.

The modules, from the bottom: ``canonical`` writes plain values down in one way only, ``money`` rounds payments,
``reading`` reads what ``contents``, the record, holds; ``central_rule`` and ``local_rule`` evaluate the optimum a
second way and ``integral`` integrates it; ``decisions``, ``disclosed`` and ``transfers`` hold the checks,
``verification`` puts them together.

What a server adds: ``merkle`` and ``receipt`` give each participant a proof of her part, ``events`` chains what
happened, ``signing`` and ``key_folder`` keep the keys, ``trust`` checks all of it offline, ``recognition`` reads any
document.
"""

from hushbid.record.contents import Record, read
from hushbid.record.events import Event
from hushbid.record.findings import Check, Verification
from hushbid.record.money import Money
from hushbid.record.receipt import Receipt
from hushbid.record.recognition import read_document
from hushbid.record.signing import KeyList
from hushbid.record.trust import verify_log, verify_receipt
from hushbid.record.verification import verify

__all__ = [
    "Check",
    "Event",
    "KeyList",
    "Money",
    "Receipt",
    "Record",
    "Verification",
    "read",
    "read_document",
    "verify",
    "verify_log",
    "verify_receipt",
]

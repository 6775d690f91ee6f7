"""The record of a campaign, and its verification: what was promised, paid and released, checked without the data.

The modules, from the bottom: ``canonical`` writes plain values down in one way only, ``money`` rounds payments,
``reading`` reads what ``contents``, the record, holds; ``central_rule`` and ``local_rule`` evaluate the optimum a
second way and ``integral`` integrates it; ``decisions``, ``disclosed`` and ``transfers`` hold the checks,
``verification`` puts them together.
"""

from hushbid.record.contents import Record, read
from hushbid.record.findings import Check, Verification
from hushbid.record.money import Money
from hushbid.record.verification import verify

__all__ = ["Check", "Money", "Record", "Verification", "read", "verify"]

"""The record of a campaign, and its verification: what was promised, paid and released, checked without the data."""

from hushbid.record.contents import Record, read
from hushbid.record.money import Money

__all__ = ["Money", "Record", "read"]

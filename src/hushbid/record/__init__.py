"""The record of a campaign: what was decided, why, and what was released, in one file or, of very many people, in two.

A record of version 3 is a JSON object (docs/reference/record.md describes every field)::

    format, version      "hushbid record", 3
    outcome              the market, everybody's bid, and every decision, as `Outcome.to_dict` gives them
    outcome_key          a hash of the outcome, by which a release says that it belongs to it
    lower_bound          no decision can have a lower objective (see `hushbid.allocation.least_objective`)
    totals               control totals: the exact sum of every column
    people               ids and group labels; each may be null
    money                payments in whole minor units of a currency, or null
    release              the released estimate and how it was made, or null
    stamps, notes        safeguards that were overridden, flags of the outcome; anything else worth saying
    versions             of the programs that made it
    table                only above `LARGEST_FILE` people: how many rows people.parquet has, and its SHA-256
    hash                 of everything else, in the canonical form

Above `LARGEST_FILE` people a record is a folder of two files. ``record.json`` is that object, in which every list with
one entry per person is left to a column of ``people.parquet`` (`hushbid.common.column_files`).

All of it is confidential: a loss or a payment tells what a person bid. Records of other versions are refused.

- `content`: the fields of the object, and what is made of them
- `folder`: the two files of a record of very many people
- `document`: the record itself, written and read again
- `streamed`: the document of a record whose table an engine wrote
"""

from hushbid.record.content import FORMAT, VERSION, totals
from hushbid.record.document import Record, read
from hushbid.record.folder import LARGEST_FILE

__all__ = ["FORMAT", "LARGEST_FILE", "VERSION", "Record", "read", "totals"]

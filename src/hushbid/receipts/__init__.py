"""What a server gives to participants and auditors: receipts under one signed root, and a log that cannot be rewritten.

The files, from the bottom: ``merkle`` proves that one leaf belongs to a tree, ``keys`` signs and lists keys, and
``key_folder`` keeps them; ``log`` chains what happened; ``receipt`` is one participant's part of all that.
A person who gets such a file checks it with `hushbid.verification`.
"""

from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import Event
from hushbid.receipts.receipt import Receipt

__all__ = ["Event", "KeyList", "Receipt"]

"""How much of a test is repetition, which ``make test-long`` adds: see tests/conftest.py."""

import os

ALL_CASES = os.environ.get("HUSHBID_CASES") == "all"
"""Whether every combination is run, rather than some that stand for all."""

ALL_STORES = os.environ.get("HUSHBID_STORES") == "all"
"""Whether what is about no store is run on both."""

TIMES = int(os.environ.get("HUSHBID_EXAMPLES", "1"))
"""How many times the usual number of examples is tried."""

"""Checking a record, a receipt or a log without trusting whoever wrote it, and without the data.

The files, in reading order: ``verifying`` puts the checks of a record together, ``findings`` is what they say,
``stated_numbers`` what they look at, ``not_derived`` what they leave out. ``check_questions``, ``check_decision``
(with ``check_optimality`` and ``kkt``), ``check_payments`` (with ``check_rents``), ``check_release`` and
``check_answers`` hold the checks. The optimum is evaluated a second way, sharing nothing with the solvers:
``central_rule`` for any goal, strata and caps (with ``central_path`` and ``central_sums``), ``local_rule`` in the local
setting (with ``local_curve`` and ``local_market``), and for a hard budget ``menu_by_quadrature``. ``strata_weights``
holds the weights of strata.
``rounding_by_quadrature`` computes again what rounding was expected to take of a budget, ``planned_by_halving`` what
markets cost at a price that was planned for one.
``quadrature`` integrates an allocation rule, ``by_curve`` compares everybody with a curve through those who were
computed, and ``work`` counts what a verification computes.
``receipts`` checks receipts and logs, ``files`` tells which kind of document a file is.
"""

from hushbid.verification.files import read_document
from hushbid.verification.findings import Check, Verification
from hushbid.verification.receipts import verify_log, verify_receipt
from hushbid.verification.verifying import verify

__all__ = ["Check", "Verification", "read_document", "verify", "verify_log", "verify_receipt"]

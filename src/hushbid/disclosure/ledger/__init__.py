"""The release ledger: what was ever drawn, so that nothing is drawn twice (docs/concepts/ledger.md).

From the bottom: ``files`` stores one drawing so that no crash repeats it, ``question`` says what is asked of whom, with
data in a form in which two can be compared, ``marks`` says the same under the ledger's key, ``store`` is the
folder of all entries, and ``once`` draws or returns what was drawn.
"""

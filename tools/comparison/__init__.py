"""Compare what the library decides now with what an earlier commit decided: ``make compare``.

A rewrite of a solver must not change a decision. Tests check claims about decisions; this compares the decisions
themselves, market by market, with those of a commit that is trusted. It is no part of ``make test``.

In reading order:

- `markets`: the list of markets: goals, caps, strata, settings, priors, questions, sizes and scales
- `worker`: decide markets with the version that can be imported, in a process per version
- `differences`: how far two decisions of one market are apart, and how far they may be
- `__main__`: the command line, and the table it prints
"""

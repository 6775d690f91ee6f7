"""What only readers of the paper need: its algorithms, corrected and as printed, and the figures of the gallery.

- :mod:`~hushbid.paper.algorithm_1`: [F] Algorithm 1, corrected, and with each misprint kept
- :mod:`~hushbid.paper.algorithm_2`: [F] Algorithm 2, corrected, and with its misprints kept
- :mod:`~hushbid.paper.mesh_payments`: [F]'s mesh method for payments
- :mod:`~hushbid.paper.problem`: what the algorithms are given, and how their answers are scored
- :mod:`~hushbid.paper.figures`: draws every figure of the gallery, from what `figures_example`, `figures_theory`,
  `figures_landscape`, `figures_attacks`, `figures_baselines` and `figures_goals` compute

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968. What is wrong in it, each with the number that
shows it, is listed in docs/explanation/errata.md.
"""

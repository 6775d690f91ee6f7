"""What only readers of the paper need: its algorithms, corrected and as printed, and the figures of the gallery.

- :mod:`~experiments.paper_figures.algorithm_1`: [F] Algorithm 1, corrected, and with each misprint kept
- :mod:`~experiments.paper_figures.algorithm_2`: [F] Algorithm 2, corrected, and with its misprints kept
- :mod:`~experiments.paper_figures.mesh_payments`: [F]'s mesh method for payments
- :mod:`~experiments.paper_figures.problem`: what the algorithms are given, and how their answers are scored
- :mod:`~experiments.paper_figures.figures`: draws every figure of the gallery, from what `figures_example`,
  `figures_theory`, `figures_landscape`, `figures_attacks`, `figures_baselines` and `figures_goals` compute

``python -m experiments.paper_figures`` draws them from a command line. None of it is in the wheel.

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968. What is wrong in it, each with the number that
shows it, is listed in docs/reference/errata.md.
"""

"""What is not part of the product: the paper's algorithms and figures, in `paper_figures`."""

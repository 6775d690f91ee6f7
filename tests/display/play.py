"""Run a notebook in a kernel of this environment: ``python tests/display/play.py NOTEBOOK PLAYED [CODE ...]``.

In a process of its own, which takes the sockets to the kernel with it. Each ``CODE`` is a cell that is run at the end.
"""

import sys


def play(given: str, played: str, *codes: str) -> None:
    """Run all cells of a notebook, and write it with what they showed."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(given, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(code) for code in codes]
    NotebookClient(notebook, kernel_name="python3", timeout=240).execute()
    nbformat.write(notebook, played)


if __name__ == "__main__":
    play(*sys.argv[1:])

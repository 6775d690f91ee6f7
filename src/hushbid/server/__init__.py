"""The campaign server: a data buyer installs it, participants have reason to trust it.

The packages, from the bottom: ``domain`` says what a campaign is and who may do what when, without any input or output;
``store`` is where SQL lives, ``vault`` where keys to people's values live; ``writer`` is the one thread that changes
anything; ``service`` holds the use cases, and its `Service` is what everything above calls. Nothing here is imported by
``import hushbid``.
"""

"""The languages of pages, reports and messages: English in the code, every other one in a catalogue.

A sentence is written once, in English, where it is said. The other languages have it in ``CODE.po`` in this folder, a
gettext catalogue; adding a language is adding such a file (``make catalogues`` fills in what is to be translated).
Where one English text has two translations, a context distinguishes them. In Python code sentences are plain text with
values in braces, ``{amount}``. In templates they are markup with values as Jinja has them, ``%(amount)s``, which are
escaped when they are filled in (`hushbid.report.rendering`).

`sentences`     a language: its sentences with values, singular and plural, and its signs in numbers
`catalogue`     a strict reader of catalogues
"""

from hushbid.languages.sentences import (
    ENGLISH,
    Forms,
    Language,
    Sentence,
    Within,
    Wording,
    language,
    language_codes,
    languages,
    noted,
    noted_plural,
)

__all__ = [
    "ENGLISH",
    "Forms",
    "Language",
    "Sentence",
    "Within",
    "Wording",
    "language",
    "language_codes",
    "languages",
    "noted",
    "noted_plural",
]

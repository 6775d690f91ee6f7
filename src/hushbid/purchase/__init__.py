"""Buying from people: from a campaign file, or people in arrays, files, frames and clusters, to what is recorded.

The files, in the order in which a purchase goes through them: ``campaign_file`` says what is wanted (``toml_sections``
reads its tables and tells every problem at once), ``people`` reads who reported and what they delivered, ``deciding``
runs the market and rounds the money, ``asking`` says what an estimate is asked of whom, ``buying`` conducts it all and
writes the results, ``on_engine`` does so for populations that do not fit in memory.
"""

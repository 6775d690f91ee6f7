"""Simulated participants: as a demonstration, as a test and as load (``python -m hushbid.server.bots --help``).

`bot`         one bot: a person who does not exist, at the other end of a link
`campaigns`   whole campaigns, played by bots
`__main__`    the command
"""

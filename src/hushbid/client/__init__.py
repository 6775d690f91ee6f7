"""The two ends of a campaign's server, as Python objects: a participant's and an analyst's.

`ParticipantClient` speaks for one person with their link. It keeps what they agreed to with their bid. In the local
setting it adds noise before anything leaves the process, never less than was agreed to, keeps the first noisy value and
sends that one on every retry; it never sends a value without noise unless the caller says so by the name of the method.
`AnalystClient` scripts whole campaigns. Both wait for answers; programs that simulate many participants use threads,
which share a `Transport`. Neither needs the server's packages.

In reading order:

- `participant`, `analyst`: the two clients
- `guards`: what a participant's device refuses to do
- `messages`: keeps what was agreed to and what was sent
- `views`: the answers
- `files`: campaign files, as they are sent to a server
- `transport`: asks, again if need be
- `calls`: the requests there are, written from the server's registry
- `refusals`: which exception a refusal is
"""

from hushbid.client.analyst import AnalystClient
from hushbid.client.messages import Keeper, MessageFolder, MessageMemory, Terms
from hushbid.client.participant import ParticipantClient
from hushbid.client.transport import Transport
from hushbid.client.views import Campaign, Invitation, Job, Participation

__all__ = [
    "AnalystClient",
    "Campaign",
    "Invitation",
    "Job",
    "Keeper",
    "MessageFolder",
    "MessageMemory",
    "ParticipantClient",
    "Participation",
    "Terms",
    "Transport",
]

"""The two ends of a campaign's server, as Python objects: a participant's and an analyst's.

`ParticipantClient` speaks for one person with her link. It keeps what she agreed to when she bid. In the local
setting it adds noise before anything leaves the process, never less than she agreed to, keeps the first noisy value and
sends that one on every retry; it never sends a value without noise unless the caller says so by the name of the method.
`AsyncParticipantClient` does all that for programs that play many people. `AnalystClient` scripts whole campaigns. None
of them needs the server's packages.

In reading order:

- `participant`, `analyst`: the conversations
- `conversation`: what a participant's device says, and what it refuses to
- `messages`: keeps what she agreed to and what was sent
- `views`: the answers
- `calls`: what to ask, and how to read an answer or a refusal, without asking
- `transport`: asks, again if need be
"""

from hushbid.client.analyst import AnalystClient
from hushbid.client.messages import Keeper, MessageFolder, MessageMemory, Terms
from hushbid.client.participant import AsyncParticipantClient, ParticipantClient
from hushbid.client.transport import AsyncTransport, Transport
from hushbid.client.views import Campaign, Invitation, Job, Participation

__all__ = [
    "AnalystClient",
    "AsyncParticipantClient",
    "AsyncTransport",
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

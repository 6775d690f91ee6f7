"""The use cases of the campaign server; `Service` is what everything above calls.

In reading order:

===============  =======================================================================================
`registry`       all use cases: what does them, who may ask for them and where
`service`        a running server: its beginning, its work in the background, its end
`use_case`       what a use case is: a function registered on the service
`route`          how a use case is reached over HTTP
`bodies`         what requests hold, and what answers wrap
`drafts`         before a campaign opens: drafting, inviting, looking ahead, opening
`forms`          what an analyst has typed into a draft's form, kept until it is a campaign
`sampling`       a campaign as somebody who is made up would see it
`removing`       taking somebody off a draft's list
`forecast`       what a campaign may cost and what people can expect, from simulated campaigns
`what_if`        how many people, or how much money, a better average takes
`links`          a participant's way in: links, secrets, devices
`participation`  what a participant does, sees and takes with her: bids, deliveries, receipts
`agreeing`       that she agrees to what she is shown, and who agreed to what
`messages`       what a device may send in the local setting
`sealing`        what is sealed of a person's data, with which key, and where it is opened
`decision`       bidding closes, privacy losses and payments are fixed
`release`        deliveries stop, the one estimate is drawn
`ending`         how a campaign ends: cancelled or closed, receipts, the end of keys
`payments`       who is owed what, who is marked as paid, who is awaited for what
`payouts`        where people are to be paid: sealed, opened for the payer, destroyed
`views_of`       what analysts, auditors and the public see
`answers_kept`   answers that came with a price: their keys at the start, and a deadline that passes
`audits`         checks of a campaign from its record and log alone, and attacks on its claims
`accounts`       users, passwords, sessions, tokens
`upkeep`         what happens by itself: at the start, and as time passes
`idempotency`    keys of requests that may arrive twice but must be carried out once
`writer`         the one thread that changes anything, with group commit
`jobs`           the one thread that works in the background
===============  =======================================================================================
"""

from hushbid.server.service.service import Service

__all__ = ["Service"]

"""The use cases of the campaign server; `Service` is what everything above calls.

In reading order:

===============  =======================================================================================
`registry`       all use cases: what does them, who may ask for them and where
`service`        a running server: its beginning, its work in the background, its end
`use_case`       what a use case is: a function with its route, and requests that are carried out once
`bodies`         what requests hold, and what answers wrap
`drafts`         before a campaign opens: drafting, looking ahead, opening
`joining`        invitations, links, secrets, devices
`sampling`       a campaign as somebody who is made up would see it
`forecast`       what a campaign may cost and what people can expect, from simulated campaigns
`what_if`        how many people, or how much money, a better average takes
`participation`  what a participant does, sees and takes with her: bids, deliveries, receipts
`agreeing`       that she agrees to what she is shown, and who agreed to what
`sealing`        what is sealed of a person's data, with which key, and where it is opened
`decision`       bidding closes, privacy losses and payments are fixed
`release`        deliveries stop, the one estimate is drawn
`ending`         how a campaign ends: cancelled or closed, receipts, the end of keys
`payments`       who is owed what and marked as paid, who is awaited for what, and where people are to be paid
`views_of`       what analysts, auditors and the public see; checks from record and log alone, and attacks on claims
`accounts`       users, passwords, sessions, tokens
`upkeep`         what happens by itself: at the start, and as time passes
`writer`         the one thread that changes anything, with group commit
`jobs`           the one thread that works in the background
===============  =======================================================================================
"""

from hushbid.server.service.service import Service

__all__ = ["Service"]

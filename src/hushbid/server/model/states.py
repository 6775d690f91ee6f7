"""The life of a campaign, and of one person's part in it.

A campaign::

    draft ──open──▶ bidding ──close──▶ allocating ──▶ delivering ──release──▶ releasing ──▶ released ──close──▶ closed
      │                 │                   │                                       │
      └────cancel───────┴──▶ cancelled      └──▶ nothing_bought                     └──▶ undelivered

In ``allocating`` and ``releasing`` everything stands still while a job decides or draws; a server that died in between
takes the job up again when it starts. ``nothing_bought`` means that too few people bid, or none within reach of
the prior, of all or of one stratum; ``undelivered`` that everybody who was to deliver, of all or of one stratum,
dropped out. Both are final: no estimate will ever exist.
From ``allocating`` a campaign can be cancelled only if its job failed. A database that was restored from a backup
older than a decision may hold a campaign that can never go on; the server cancels it when it starts. Where people give
price and answers in one visit, nobody is waited for in ``delivering``: the release may follow at once.

A person's part::

    invited ──bid──▶ bid ──▶ promised ──deliver──▶ delivered
       │                   │  │          ├───────────────▶ dropped         (did not deliver before the release)
       │                   │  └──▶ not_bought                              (her loss is 0: there is nothing to deliver)
       ├──▶ declined       └──withdraw──▶ withdrawn ◀── also from promised and delivered, until the release is claimed
       ├──▶ absent                                                         (bidding closed without an answer)
    excluded                                                               (by the privacy account, when the campaign
    opened)

In one visit whoever is bought from goes from bid to delivered; dropped is then only somebody whose key was lost.

Whether she has been paid is not a state: one late person never blocks another's pay, nor her own pay the campaign.
"""

from enum import StrEnum


class CampaignState(StrEnum):
    """Where a campaign stands."""

    DRAFT = "draft"
    BIDDING = "bidding"
    ALLOCATING = "allocating"
    NOTHING_BOUGHT = "nothing_bought"
    DELIVERING = "delivering"
    RELEASING = "releasing"
    UNDELIVERED = "undelivered"
    RELEASED = "released"
    CLOSED = "closed"
    CANCELLED = "cancelled"

    def may_become(self, other: "CampaignState") -> bool:
        """Whether one step leads from this state to another."""
        return other in _STEPS[self]

    @property
    def is_final(self) -> bool:
        """Whether no step leads anywhere."""
        return not _STEPS[self]

    @property
    def is_over(self) -> bool:
        """Whether nobody will be asked for anything any more; receipts exist."""
        return self in _OVER

    @property
    def is_decided(self) -> bool:
        """Whether people have been told what is bought from them."""
        return self in _DECIDED


class ParticipantState(StrEnum):
    """Where one person stands in one campaign."""

    EXCLUDED = "excluded"
    INVITED = "invited"
    DECLINED = "declined"
    ABSENT = "absent"
    BID = "bid"
    NOT_BOUGHT = "not_bought"
    PROMISED = "promised"
    DELIVERED = "delivered"
    DROPPED = "dropped"
    WITHDRAWN = "withdrawn"


_C = CampaignState
_STEPS: dict[CampaignState, frozenset[CampaignState]] = {
    _C.DRAFT: frozenset({_C.BIDDING, _C.CANCELLED}),
    _C.BIDDING: frozenset({_C.ALLOCATING, _C.CANCELLED}),
    _C.ALLOCATING: frozenset({_C.DELIVERING, _C.NOTHING_BOUGHT, _C.CANCELLED}),
    _C.NOTHING_BOUGHT: frozenset(),
    _C.DELIVERING: frozenset({_C.RELEASING, _C.CANCELLED}),  # cancelled by a restore only
    _C.RELEASING: frozenset({_C.RELEASED, _C.UNDELIVERED}),
    _C.UNDELIVERED: frozenset(),
    _C.RELEASED: frozenset({_C.CLOSED}),
    _C.CLOSED: frozenset(),
    _C.CANCELLED: frozenset(),
}
_OVER = frozenset({_C.NOTHING_BOUGHT, _C.UNDELIVERED, _C.RELEASED, _C.CLOSED, _C.CANCELLED})
_DECIDED = frozenset({_C.DELIVERING, _C.RELEASING, _C.UNDELIVERED, _C.RELEASED, _C.CLOSED, _C.NOTHING_BOUGHT})

"""The requests of the HTTP interface, by their names, so that a client needs none of the server's packages.

``python -m tools.client_calls`` writes this module from the server's registry.
"""

from typing import NamedTuple


class Call(NamedTuple):
    """One kind of request."""

    method: str
    """GET, PUT, POST or DELETE."""

    path: str
    """Below the interface's prefix; names in braces are identifiers."""

    once: bool = False
    """Whether it carries a key, by which the server recognises a repetition."""


CALLS = {
    "account": Call("GET", "/campaigns/{campaign}/account"),
    "agree": Call("PUT", "/participation/agreement"),
    "agreements": Call("GET", "/campaigns/{campaign}/agreements.csv"),
    "agreements_with_texts": Call("GET", "/campaigns/{campaign}/agreements.json"),
    "agreements_workbook": Call("GET", "/campaigns/{campaign}/agreements.xlsx"),
    "awaited": Call("GET", "/campaigns/{campaign}/awaited.csv"),
    "awaited_workbook": Call("GET", "/campaigns/{campaign}/awaited.xlsx"),
    "bid": Call("PUT", "/participation/bid"),
    "campaign": Call("GET", "/campaigns/{campaign}"),
    "campaign_file": Call("GET", "/campaigns/{campaign}/campaign.toml"),
    "campaigns": Call("GET", "/campaigns"),
    "cancel": Call("POST", "/campaigns/{campaign}/cancel", once=True),
    "change": Call("PUT", "/campaigns/{campaign}"),
    "close_bidding": Call("POST", "/campaigns/{campaign}/close-bidding", once=True),
    "close_campaign": Call("POST", "/campaigns/{campaign}/close", once=True),
    "consent": Call("GET", "/participation/consent"),
    "copy": Call("POST", "/campaigns/{campaign}/copy", once=True),
    "decline": Call("POST", "/participation/decline", once=True),
    "deliver": Call("PUT", "/participation/delivery"),
    "devices": Call("GET", "/participation/devices"),
    "discard": Call("DELETE", "/campaigns/{campaign}", once=True),
    "download_events": Call("GET", "/campaigns/{campaign}/events.jsonl"),
    "download_report": Call("GET", "/campaigns/{campaign}/report"),
    "draft": Call("POST", "/campaigns", once=True),
    "end_other_devices": Call("DELETE", "/participation/devices", once=True),
    "enter": Call("PUT", "/participation/secret"),
    "estimate": Call("GET", "/campaigns/{campaign}/release"),
    "export": Call("GET", "/participation/export"),
    "health": Call("GET", "/health"),
    "invite": Call("POST", "/campaigns/{campaign}/participants", once=True),
    "keys": Call("GET", "/keys"),
    "leave": Call("DELETE", "/participation/secret"),
    "log_in": Call("POST", "/session"),
    "log_out": Call("DELETE", "/session"),
    "mark_paid": Call("POST", "/campaigns/{campaign}/payments", once=True),
    "mark_unpaid": Call("POST", "/campaigns/{campaign}/unpaid", once=True),
    "menu": Call("GET", "/participation/menu"),
    "open": Call("POST", "/campaigns/{campaign}/open", once=True),
    "own_link": Call("POST", "/participation/link", once=True),
    "page_of_events": Call("GET", "/campaigns/{campaign}/events"),
    "page_of_jobs": Call("GET", "/campaigns/{campaign}/jobs"),
    "participants": Call("GET", "/campaigns/{campaign}/participants"),
    "participation": Call("GET", "/participation"),
    "payments": Call("GET", "/campaigns/{campaign}/payments.csv"),
    "payments_workbook": Call("GET", "/campaigns/{campaign}/payments.xlsx"),
    "payout": Call("GET", "/participation/payout"),
    "personal_account": Call("GET", "/participation/privacy-account"),
    "preview": Call("POST", "/preview"),
    "preview_campaign": Call("POST", "/campaigns/{campaign}/preview"),
    "privacy_account": Call("GET", "/privacy-account"),
    "public": Call("GET", "/campaigns/{campaign}/public"),
    "receipt": Call("GET", "/participation/receipt"),
    "record": Call("GET", "/campaigns/{campaign}/record"),
    "release": Call("POST", "/campaigns/{campaign}/release", once=True),
    "remove": Call("DELETE", "/campaigns/{campaign}/participants/{participant}", once=True),
    "remove_payout": Call("DELETE", "/participation/payout"),
    "renew_link": Call("POST", "/campaigns/{campaign}/links", once=True),
    "session": Call("GET", "/session"),
    "state_payout": Call("PUT", "/participation/payout"),
    "withdraw": Call("POST", "/participation/withdrawal", once=True),
}

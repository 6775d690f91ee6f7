"""All use cases: their names, what does them, who may ask for them and where.

Each is a function of another module of this package, where its rules, its arguments and its result stand. The first
argument of a change is the name by which crash tests know it. Addresses are compared in this order, so what everybody
uses comes first.
"""

from functools import partial
from typing import Any

from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import Page
from hushbid.server.service import (
    accounts,
    agreeing,
    audits,
    bodies,
    decision,
    drafts,
    ending,
    joining,
    payments,
    sampling,
    views_of,
)
from hushbid.server.service import participation as participating
from hushbid.server.service import payments as paying
from hushbid.server.service import release as releasing
from hushbid.server.service.use_case import Route, UseCase, begins, changes, reads, steps, submits

_participant = partial(Route, by="secret")
_newcomer = partial(Route, by="link")
_analyst = partial(Route, by="analyst")
_staff = partial(Route, by="staff")
_anybody = partial(Route, by="anybody")
_PAGE = ("limit", "cursor")


class Accounts:
    """The use cases of accounts, which need no running server."""

    users = reads(accounts.users)
    create_user = steps(accounts.create_user)
    set_password = steps(accounts.set_password)
    remove_user = changes("user", accounts.remove_user)
    create_api_token = changes("token", accounts.create_api_token)
    revoke_api_token = changes("token", accounts.revoke_api_token)


class UseCases(Accounts):
    """The names of a running server's use cases."""

    # a participant's part, by the secret that a link was exchanged for
    bid = submits("bid", participating.bid, _participant("PUT /participation/bid", "Bid", body=bodies.Bid))
    deliver = submits(
        "delivery", participating.deliver, _participant("PUT /participation/delivery", "Deliver", body=bodies.Delivery)
    )
    participation = reads(participating.read_own, _participant("GET /participation", "Where do I stand?"))
    menu = reads(participating.read_menu, _participant("GET /participation/menu", "What may I expect?"))
    consent = reads(
        agreeing.read_consent,
        _participant("GET /participation/consent", "What am I asked to agree to?", query=("language",)),
    )
    agree = changes(
        "agree", agreeing.agree, _participant("PUT /participation/agreement", "Agree", body=bodies.Agreeing)
    )
    agreed_to = reads(agreeing.read_agreed)
    decline = changes("decline", participating.decline, _participant("POST /participation/decline", "Decline"))
    withdraw = changes("withdraw", participating.withdraw, _participant("POST /participation/withdrawal", "Withdraw"))
    payout = steps(payments.read_payout, _participant("GET /participation/payout", "Where am I paid?"))
    state_payout = changes(
        "payout",
        payments.state_payout,
        _participant("PUT /participation/payout", "Say where to pay me", body=bodies.PayoutHandle),
    )
    remove_payout = changes(
        "payout",
        payments.remove_payout,
        _participant("DELETE /participation/payout", "Forget where to pay me", repeatable=True),
    )
    export = steps(participating.export)
    personal_account = steps(
        participating.personal_account, _participant("GET /participation/privacy-account", "What have I given up?")
    )

    # a participant's devices
    enter = submits(
        "enter",
        joining.enter,
        _newcomer("PUT /participation/secret", "Exchange a link for a secret", body=bodies.Exchange),
    )
    leave = changes(
        "leave", joining.leave, _participant("DELETE /participation/secret", "Leave", status=204, repeatable=True)
    )
    own_link = changes(
        "own-link", joining.own_link, _participant("POST /participation/link", "Make a link for another device")
    )
    require_open = reads(joining.require_open)
    devices = reads(joining.devices, _participant("GET /participation/devices", "Where is my part open?"))
    end_other_devices = changes(
        "end-others", joining.end_others, _participant("DELETE /participation/devices", "End all other devices")
    )

    # the analyst, before a campaign opens
    draft = changes(
        "draft", drafts.draft, _analyst("POST /campaigns", "Draft a campaign", body=CampaignSettings, status=201)
    )
    copy = changes(
        "copy",
        drafts.copy,
        _analyst("POST /campaigns/{campaign}/copy", "Copy a campaign", body=bodies.Copy, status=201),
    )
    change = changes(
        "change", drafts.change, _analyst("PUT /campaigns/{campaign}", "Change a draft", body=CampaignSettings)
    )
    discard = changes(
        "discard", drafts.discard, _analyst("DELETE /campaigns/{campaign}", "Discard a draft", status=204)
    )
    preview = steps(
        drafts.look_ahead,
        _analyst("POST /preview", "Look ahead without storing anything", body=bodies.PreviewOf, computes=True),
    )
    preview_campaign = steps(
        drafts.look_ahead_at,
        _analyst("POST /campaigns/{campaign}/preview", "Look ahead", body=bodies.People, computes=True),
    )
    sketch_menu = steps(drafts.sketch_menu)
    answers_ahead = steps(drafts.answers_ahead)
    keep_draft = changes("keep", drafts.keep)
    typed_draft = reads(views_of.read_typed)
    sample = steps(sampling.sample)
    invite = changes(
        "invite",
        joining.invite,
        _analyst(
            "POST /campaigns/{campaign}/participants",
            "Invite people",
            body=bodies.Invite,
            status=201,
            answers=bodies.Invitations,
        ),
    )
    person = reads(joining.person)
    remove = changes(
        "remove",
        joining.remove,
        _analyst("DELETE /campaigns/{campaign}/participants/{participant}", "Remove somebody"),
    )
    renew_link = changes(
        "renew",
        joining.renew_link,
        _analyst("POST /campaigns/{campaign}/links", "Renew a link", body=bodies.Renewal, status=201),
    )
    open = begins(
        "open.start", drafts.start_opening, _analyst("POST /campaigns/{campaign}/open", "Open for bids", status=202)
    )

    # the analyst, from the bids to the end
    close_bidding = begins(
        "allocation.start",
        decision.close_bidding,
        _analyst("POST /campaigns/{campaign}/close-bidding", "Close bidding", status=202),
    )
    release = begins(
        "release.start",
        releasing.release,
        _analyst("POST /campaigns/{campaign}/release", "Release the estimate", body=bodies.Releasing, status=202),
    )
    mark_paid = changes(
        "payment",
        paying.mark_paid,
        _analyst("POST /campaigns/{campaign}/payments", "Mark as paid", body=bodies.Payees, answers=bodies.Paid),
    )
    mark_unpaid = changes(
        "payment",
        paying.mark_unpaid,
        _analyst(
            "POST /campaigns/{campaign}/unpaid", "Take marks as paid back", body=bodies.Unpaying, answers=bodies.Unpaid
        ),
    )
    payment_file = steps(payments.payment_file)
    close_campaign = changes(
        "close", ending.close, _analyst("POST /campaigns/{campaign}/close", "Close a campaign", body=bodies.Closing)
    )
    cancel = changes(
        "cancel",
        ending.cancel,
        _analyst("POST /campaigns/{campaign}/cancel", "Cancel a campaign", body=bodies.Cancelling),
    )

    # what analysts, auditors and the public see
    campaigns = reads(views_of.list_campaigns, _staff("GET /campaigns", "List campaigns", query=_PAGE))
    campaign = reads(views_of.read_campaign, _staff("GET /campaigns/{campaign}", "Read a campaign"))
    participants = reads(
        views_of.list_participants, _staff("GET /campaigns/{campaign}/participants", "List participants", query=_PAGE)
    )
    jobs = reads(views_of.list_jobs)
    page_of_jobs = reads(
        views_of.page_of_jobs, _staff("GET /campaigns/{campaign}/jobs", "List background work", query=_PAGE)
    )
    events = reads(views_of.list_events)
    whole_log = reads(views_of.whole_log)
    page_of_events = reads(
        views_of.page_of_events,
        _staff("GET /campaigns/{campaign}/events", "Read the log", query=_PAGE, answers=Page[bodies.Event]),
    )
    record = reads(views_of.read_record)
    payments = reads(paying.payments)
    agreements = reads(agreeing.agreements)
    account = reads(paying.account, _staff("GET /campaigns/{campaign}/account", "Read the account", computes=True))
    awaited = reads(paying.awaited)
    privacy_account = reads(
        views_of.list_privacy_account, _staff("GET /privacy-account", "Read the privacy account", query=_PAGE)
    )
    checks = steps(audits.checks)
    attacks = steps(audits.attacks)
    public = reads(views_of.read_public, _anybody("GET /campaigns/{campaign}/public", "What everybody may see"))

    # logging in
    log_in = steps(accounts.log_in)
    log_out = changes("logout", accounts.log_out)
    session_of = steps(accounts.session_of)
    principal_of = steps(accounts.principal_of)


def reached() -> dict[str, tuple[UseCase[Any, Any], Route]]:
    """Return the use cases that are reached over HTTP, by their names."""
    return {
        name: (found, found.route)
        for name, found in vars(UseCases).items()
        if isinstance(found, UseCase) and found.route is not None
    }

"""All use cases: their names, what does them, who may ask for them and where.

Each is a function of another module of this package, where its rules, its arguments and its result stand. The first
argument of a `Change` is the name by which crash tests know it. Addresses are compared in this order, so what everybody
uses comes first.
"""

from typing import Any

from hushbid.server.domain.settings import CampaignSettings
from hushbid.server.domain.views import Page
from hushbid.server.service import (
    accounts,
    agreeing,
    audits,
    bodies,
    decision,
    drafts,
    ending,
    forms,
    links,
    payouts,
    removing,
    sampling,
    views_of,
)
from hushbid.server.service import participation as participating
from hushbid.server.service import payments as paying
from hushbid.server.service import release as releasing
from hushbid.server.service.route import Route
from hushbid.server.service.use_case import Background, Change, Read, Steps, Submission, UseCase

_PAGE = ("limit", "cursor")


class UseCases:
    """The names of a running server's use cases."""

    # a participant's part, by the secret that a link was exchanged for
    bid = Submission(
        "bid",
        participating.bid,
        Route("PUT /participation/bid", by="secret", summary="Bid", body=bodies.Bid),
    )
    deliver = Submission(
        "delivery",
        participating.deliver,
        Route("PUT /participation/delivery", by="secret", summary="Deliver", body=bodies.Delivery),
    )
    participation = Read(participating.read_own, Route("GET /participation", by="secret", summary="Where do I stand?"))
    menu = Read(participating.read_menu, Route("GET /participation/menu", by="secret", summary="What may I expect?"))
    consent = Read(
        agreeing.read_consent,
        Route("GET /participation/consent", by="secret", summary="What am I asked to agree to?", query=("language",)),
    )
    agree = Change(
        "agree",
        agreeing.agree,
        Route("PUT /participation/agreement", by="secret", summary="Agree", body=bodies.Agreeing),
    )
    agreed_to = Read(agreeing.read_agreed)
    decline = Change(
        "decline", participating.decline, Route("POST /participation/decline", by="secret", summary="Decline")
    )
    withdraw = Change(
        "withdraw", participating.withdraw, Route("POST /participation/withdrawal", by="secret", summary="Withdraw")
    )
    payout = Steps(payouts.read_payout, Route("GET /participation/payout", by="secret", summary="Where am I paid?"))
    state_payout = Change(
        "payout",
        payouts.state_payout,
        Route("PUT /participation/payout", by="secret", summary="Say where to pay me", body=bodies.PayoutHandle),
    )
    remove_payout = Change(
        "payout",
        payouts.remove_payout,
        Route("DELETE /participation/payout", by="secret", summary="Forget where to pay me", repeatable=True),
    )
    export = Steps(participating.export)
    personal_account = Steps(
        participating.personal_account,
        Route("GET /participation/privacy-account", by="secret", summary="What have I given up?"),
    )

    # a participant's devices
    enter = Submission(
        "enter",
        links.enter,
        Route("PUT /participation/secret", by="link", summary="Exchange a link for a secret", body=bodies.Exchange),
    )
    leave = Change(
        "leave",
        links.leave,
        Route("DELETE /participation/secret", by="secret", summary="Leave", status=204, repeatable=True),
    )
    own_link = Change(
        "own-link",
        links.own_link,
        Route("POST /participation/link", by="secret", summary="Make a link for another device"),
    )
    require_open = Read(links.require_open)
    devices = Read(links.devices, Route("GET /participation/devices", by="secret", summary="Where is my part open?"))
    end_other_devices = Change(
        "end-others",
        links.end_others,
        Route("DELETE /participation/devices", by="secret", summary="End all other devices"),
    )

    # the analyst, before a campaign opens
    draft = Change(
        "draft",
        drafts.draft,
        Route("POST /campaigns", by="analyst", summary="Draft a campaign", body=CampaignSettings, status=201),
    )
    copy = Change(
        "copy",
        drafts.copy,
        Route("POST /campaigns/{campaign}/copy", by="analyst", summary="Copy a campaign", body=bodies.Copy, status=201),
    )
    change = Change(
        "change",
        drafts.change,
        Route("PUT /campaigns/{campaign}", by="analyst", summary="Change a draft", body=CampaignSettings),
    )
    discard = Change(
        "discard",
        drafts.discard,
        Route("DELETE /campaigns/{campaign}", by="analyst", summary="Discard a draft", status=204),
    )
    preview = Steps(
        drafts.look_ahead,
        Route(
            "POST /preview",
            by="analyst",
            summary="Look ahead without storing anything",
            body=bodies.PreviewOf,
            computes=True,
        ),
    )
    preview_campaign = Steps(
        drafts.look_ahead_at,
        Route(
            "POST /campaigns/{campaign}/preview", by="analyst", summary="Look ahead", body=bodies.People, computes=True
        ),
    )
    sketch_menu = Steps(drafts.sketch_menu)
    answers_ahead = Steps(drafts.answers_ahead)
    keep_form = Change("form", forms.keep)
    save_form = Change("form.save", forms.save)
    forget_form = Change("form", forms.forget)
    form = Read(forms.kept)
    form_about = Read(forms.kept_about)
    unfinished_forms = Read(forms.unfinished)
    sample = Steps(sampling.sample)
    invite = Change(
        "invite",
        drafts.invite,
        Route(
            "POST /campaigns/{campaign}/participants",
            by="analyst",
            summary="Invite people",
            body=bodies.Invite,
            status=201,
            answers=bodies.Invitations,
        ),
    )
    person = Read(removing.person)
    remove = Change(
        "remove",
        removing.remove,
        Route("DELETE /campaigns/{campaign}/participants/{participant}", by="analyst", summary="Remove somebody"),
    )
    renew_link = Change(
        "renew",
        drafts.renew_link,
        Route(
            "POST /campaigns/{campaign}/links", by="analyst", summary="Renew a link", body=bodies.Renewal, status=201
        ),
    )
    open = Background(
        "open.start",
        drafts.start_opening,
        Route("POST /campaigns/{campaign}/open", by="analyst", summary="Open for bids", status=202),
    )

    # the analyst, from the bids to the end
    close_bidding = Background(
        "allocation.start",
        decision.close_bidding,
        Route("POST /campaigns/{campaign}/close-bidding", by="analyst", summary="Close bidding", status=202),
    )
    release = Background(
        "release.start",
        releasing.release,
        Route(
            "POST /campaigns/{campaign}/release",
            by="analyst",
            summary="Release the estimate",
            body=bodies.Releasing,
            status=202,
        ),
    )
    mark_paid = Change(
        "payment",
        paying.mark_paid,
        Route(
            "POST /campaigns/{campaign}/payments",
            by="analyst",
            summary="Mark as paid",
            body=bodies.Payees,
            answers=bodies.Paid,
        ),
    )
    mark_unpaid = Change(
        "payment",
        paying.mark_unpaid,
        Route(
            "POST /campaigns/{campaign}/unpaid",
            by="analyst",
            summary="Take marks as paid back",
            body=bodies.Unpaying,
            answers=bodies.Unpaid,
        ),
    )
    payment_file = Steps(payouts.payment_file)
    close_campaign = Change(
        "close",
        ending.close,
        Route("POST /campaigns/{campaign}/close", by="analyst", summary="Close a campaign", body=bodies.Closing),
    )
    cancel = Change(
        "cancel",
        ending.cancel,
        Route("POST /campaigns/{campaign}/cancel", by="analyst", summary="Cancel a campaign", body=bodies.Cancelling),
    )

    # what analysts, auditors and the public see
    campaigns = Read(
        views_of.list_campaigns, Route("GET /campaigns", by="staff", summary="List campaigns", query=_PAGE)
    )
    campaign = Read(views_of.read_campaign, Route("GET /campaigns/{campaign}", by="staff", summary="Read a campaign"))
    participants = Read(
        views_of.list_participants,
        Route("GET /campaigns/{campaign}/participants", by="staff", summary="List participants", query=_PAGE),
    )
    jobs = Read(views_of.list_jobs)
    page_of_jobs = Read(
        views_of.page_of_jobs,
        Route("GET /campaigns/{campaign}/jobs", by="staff", summary="List background work", query=_PAGE),
    )
    job = Read(views_of.read_job)
    events = Read(views_of.list_events)
    page_of_events = Read(
        views_of.page_of_events,
        Route(
            "GET /campaigns/{campaign}/events",
            by="staff",
            summary="Read the log",
            query=_PAGE,
            answers=Page[bodies.Event],
        ),
    )
    record = Read(views_of.read_record)
    payments = Read(paying.payments)
    agreements = Read(agreeing.agreements)
    account = Read(
        paying.account,
        Route("GET /campaigns/{campaign}/account", by="staff", summary="Read the account", computes=True),
    )
    awaited = Read(paying.awaited)
    privacy_account = Read(
        views_of.list_privacy_account,
        Route("GET /privacy-account", by="staff", summary="Read the privacy account", query=_PAGE),
    )
    checks = Steps(audits.checks)
    attacks = Steps(audits.attacks)
    public = Read(
        views_of.read_public,
        Route("GET /campaigns/{campaign}/public", by="anybody", summary="What everybody may see"),
    )

    # accounts
    users = Read(accounts.users)
    create_user = Steps(accounts.create_user)
    set_password = Steps(accounts.set_password)
    remove_user = Change("user", accounts.remove_user)
    create_api_token = Change("token", accounts.create_api_token)
    revoke_api_token = Change("token", accounts.revoke_api_token)
    log_in = Steps(accounts.log_in)
    log_out = Change("logout", accounts.log_out)
    session_of = Steps(accounts.session_of)
    principal_of = Steps(accounts.principal_of)


def reached() -> dict[str, tuple[UseCase[Any, Any], Route]]:
    """Return the use cases that are reached over HTTP, by their names."""
    return {
        name: (found, found.route)
        for name, found in vars(UseCases).items()
        if isinstance(found, UseCase) and found.route is not None
    }

"""All use cases by their names on a running server.

Each is a function of another module of this package, where its route, its rules, its arguments and its result are.
Addresses are compared in this order, so the busiest come first.
"""

from typing import Any

from hushbid.server.service import accounts, agreeing, decision, drafts, ending, joining, sampling, views_of
from hushbid.server.service import participation as participating
from hushbid.server.service import payments as paying
from hushbid.server.service import release as releasing
from hushbid.server.service.use_case import Route, UseCase


class Accounts:
    """The use cases of accounts, which need no running server."""

    users = accounts.users
    create_user = accounts.create_user
    set_password = accounts.set_password
    remove_user = accounts.remove_user
    create_api_token = accounts.create_api_token
    revoke_api_token = accounts.revoke_api_token


class UseCases(Accounts):
    """The names of a running server's use cases."""

    # a participant's part, by the secret that a link was exchanged for
    bid = participating.bid
    deliver = participating.deliver
    participation = participating.read_own
    menu = participating.read_menu
    consent = agreeing.read_consent
    agree = agreeing.agree
    agreed_to = agreeing.read_agreed
    decline = participating.decline
    withdraw = participating.withdraw
    payout = paying.read_payout
    state_payout = paying.state_payout
    remove_payout = paying.remove_payout
    export = participating.export
    personal_account = participating.personal_account

    # a participant's devices
    enter = joining.enter
    leave = joining.leave
    own_link = joining.own_link
    require_open = joining.require_open
    devices = joining.devices
    end_other_devices = joining.end_others

    # the analyst, before a campaign opens
    draft = drafts.draft
    copy = drafts.copy
    change = drafts.change
    discard = drafts.discard
    preview = drafts.look_ahead
    preview_campaign = drafts.look_ahead_at
    answers_ahead = drafts.answers_ahead
    keep_draft = drafts.keep
    typed_draft = views_of.read_typed
    sample = sampling.sample
    invite = joining.invite
    person = joining.person
    remove = joining.remove
    renew_link = joining.renew_link
    open = drafts.start_opening

    # the analyst, from the bids to the end
    close_bidding = decision.close_bidding
    release = releasing.release
    mark_paid = paying.mark_paid
    mark_unpaid = paying.mark_unpaid
    payment_file = paying.payment_file
    close_campaign = ending.close
    cancel = ending.cancel

    # what analysts, auditors and the public see
    campaigns = views_of.list_campaigns
    campaign = views_of.read_campaign
    participants = views_of.list_participants
    jobs = views_of.list_jobs
    page_of_jobs = views_of.page_of_jobs
    events = views_of.read_log
    page_of_events = views_of.page_of_events
    record = views_of.read_record
    payments = paying.payments
    agreements = agreeing.agreements
    account = paying.account
    awaited = paying.awaited
    privacy_account = views_of.list_privacy_account
    checks = views_of.checks
    attacks = views_of.attacks
    public = views_of.read_public

    # logging in
    log_in = accounts.log_in
    log_out = accounts.log_out
    session_of = accounts.session_of
    principal_of = accounts.principal_of


def reached() -> dict[str, tuple[UseCase[Any, Any], Route]]:
    """Return the use cases that are reached over HTTP, by their names."""
    return {
        name: (found, found.route)
        for name, found in vars(UseCases).items()
        if isinstance(found, UseCase) and found.route is not None
    }

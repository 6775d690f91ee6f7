"""What analysts and auditors are told, by the state, step, field or figure that it belongs to."""

from hushbid.languages import Wording, noted, noted_within

CODES: dict[str, Wording] = {
    "strata.shares": noted("Groups, and the shares with which their averages are combined"),
    "strata.contrast": noted("Groups, and the numbers with which their averages are combined"),
    "role.analyst": noted("analyst"),
    "role.auditor": noted("auditor"),
    "state.draft": noted("Draft"),
    "state.bidding": noted("Naming prices"),
    "state.allocating": noted("Deciding"),
    "state.nothing_bought": noted("Nothing bought"),
    "state.delivering": noted("Giving values"),
    "state.releasing": noted("Releasing"),
    "state.undelivered": noted("No result"),
    "state.released": noted("Released"),
    "state.closed": noted("Closed"),
    "state.cancelled": noted("Cancelled"),
    "path.draft": noted("Draft"),
    "path.bidding": noted("Prices"),
    "path.delivering": noted("Values"),
    "path.released": noted("Average"),
    "path.closed": noted("Closed"),
    "next.draft.title": noted("A draft"),
    "next.draft.text": noted("Nobody knows of it yet. Invite people, look ahead at what it may cost, and open it."),
    "next.bidding.title": noted("People are naming their prices"),
    "next.bidding.text": noted(
        "You cannot see prices while they come in. Close when enough people have answered: then"
        " privacy losses and payments are fixed for good."
    ),
    "next.allocating.title": noted("Being decided"),
    "next.allocating.text": noted(
        "Privacy losses and payments are being computed. Everything stands still until they are there."
    ),
    "next.delivering.title": noted("People are giving their values"),
    "next.delivering.text": noted(
        "Everybody finds her offer where she opened her personal link. This server writes to nobody:"
        " ask people to come back. Release when those who want to have delivered: drop-outs cost"
        " accuracy, but nobody's promise and nobody else's pay."
    ),
    "next.releasing.title": noted("The average is being drawn"),
    "next.releasing.text": noted("It is drawn once and never again."),
    "next.released.title": noted("The average is out"),
    "next.released.text": noted("Pay people, keep record and log, and close the campaign."),
    "next.closed.title": noted("Over and closed"),
    "next.closed.text": noted("Record, log and receipts stay available."),
    "next.nothing_bought.title": noted("Nothing was bought"),
    "next.nothing_bought.text": noted(
        "Too few people took part, or their prices were out of reach. This is final; fees for taking"
        " part are still due."
    ),
    "next.undelivered.title": noted("Nobody delivered"),
    "next.undelivered.text": noted("There is no average, and there will be none. Fees for taking part are still due."),
    "next.cancelled.title": noted("Cancelled"),
    "next.cancelled.text": noted(
        "It ended before its decision. Whoever had named a price keeps the participation fee."
    ),
    "job.opening": noted("Computing what it may cost, and what people can expect. {share}"),
    "job.allocation": noted("Working out who is paid what. {share}"),
    "job.release": noted("Drawing the average. {share}"),
    "person.invited": noted("no answer yet"),
    "person.bid": noted("named a price"),
    "person.promised": noted("value awaited"),
    "person.delivered": noted("delivered"),
    "person.not_bought": noted("nothing bought"),
    "person.declined": noted_within("a person", "declined"),
    "person.absent": noted_within("a person", "did not answer"),
    "person.dropped": noted_within("a person", "dropped out"),
    "person.withdrawn": noted("withdrew"),
    "person.excluded": noted("excluded by the privacy account"),
    "draft.setting_central": noted(
        "More accurate for the same privacy. People have to trust this server with their values"
        " until the key to them is destroyed."
    ),
    "draft.setting_local": noted(
        "People need not trust this server with their values: their browser adds the noise before"
        " anything is sent. The same accuracy costs more."
    ),
    "draft.budget": noted("An amount to spend, on average"),
    "draft.hard_budget": noted("An amount that is never exceeded"),
    "draft.standard_error": noted("An accuracy to reach"),
    "draft.buyer_weight": noted("What an error of one unit costs you"),
    "preview.expected": noted("Cost, on average"),
    "preview.high": noted("Not exceeded in about 95 of 100 campaigns"),
    "preview.worst": noted("Never exceeded, whatever people say"),
    "preview.share": noted("Bought from"),
    "preview.each": noted("Payment to each of them, on average"),
    "preview.sure": noted_within("a forecast", "Even odds become at most"),
    "ask.kind_number": noted("a number"),
    "ask.kind_yes_no": noted("yes or no"),
    "ask.kind_choice": noted("one of several answers"),
    "strata_form.kind_shares": noted("an average by shares"),
    "strata_form.kind_contrast": noted("a difference (for experts: a weight of any sign for each)"),
    "unavailable.never_exceed": noted("Not possible here: fees and payments come to the amount on average only."),
    "unavailable.accuracy": noted(
        "Not possible here: with strata and noise in people's browsers the best way to an accuracy is not known."
    ),
    "unavailable.limits": noted(
        "Not possible here: with noise in people's browsers nobody can compute the best purchase for limits of each"
        " person."
    ),
    "unavailable.relation": noted(
        "Not possible here: for a single yes/no question and noise in people's browsers this protection is not proved."
    ),
    "privacy.strong": noted("Strong privacy"),
    "privacy.medium": noted("Medium privacy"),
    "privacy.light": noted("Light privacy"),
    "relation.none": noted("No protection"),
    "relation.none_hint": noted("Cheapest; right if prices have nothing to do with answers."),
    "relation.some": noted("Some protection"),
    "relation.some_hint": noted("Against a relation as close as a correlation of 0.1. Right for most campaigns."),
    "relation.much": noted("Strong protection"),
    "relation.much_hint": noted("Against a correlation of 0.3. Costs more, or accuracy."),
    "paid.payout_none": noted("not asked"),
    "paid.payout_email": noted("an e-mail address"),
    "paid.payout_iban": noted("an IBAN"),
    "paid.payout_panel": noted("a panel's id"),
    "what_if.get": noted("With {people} people you get {errors} for about {cost}."),
    "what_if.get_each": noted("With {people} people you get the errors below for about {cost}."),
    "what_if.costs": noted("With {people} people {errors} costs about {cost}."),
    "what_if.costs_each": noted("With {people} people the errors below cost about {cost}."),
    "what_if.costs_twice": noted(
        "With {people} people {errors} costs about {cost}; with {twice} people about {other}."
    ),
    "what_if.costs_twice_each": noted(
        "With {people} people the errors below cost about {cost}; with {twice} people about {other}."
    ),
    "what_if.plus_minus": noted(
        "± is half of a 95 % interval before it is cut to the range, as in results, if prices tell"
        " nothing about answers."
    ),
    "what_if.plus_minus_worst": noted(
        "± is half of a 95 % interval before it is cut to the range, as in results. It allows for"
        " prices that tell as much about answers as you protect against."
    ),
    "what_if.missing_left_out": noted(
        "The forecast assumes that everyone who sells also delivers. If some do not, ± is larger."
    ),
    "what_if.limits_left_out": noted(
        "The forecast assumes that nobody sets a limit of their own and that everyone who sells also"
        " delivers. If some do set limits or do not deliver, ± is larger."
    ),
    "remove.refused": noted(
        "Nobody can be removed any more: the campaign has opened, and the average is about everybody"
        " on the list. Whoever does not want to take part can decline or withdraw."
    ),
    "remove.gone": noted("Nobody of that name is on the list any more."),
    "step.edit.button": noted("Edit"),
    "step.pay.button": noted("Pay people"),
    "step.pay.title": noted("Mark as paid?"),
    "step.pay.text": noted(
        "Marking moves no money. It says that these people have been paid, is written into the log"
        " with your name, and shown to each of them. It can be taken back."
    ),
    "step.pay.nobody": noted("Nobody was chosen to whom anything is due."),
    "step.pay.go": noted("Yes, they have been paid"),
    "step.unpay.title": noted("Take the marks back?"),
    "step.unpay.text": noted(
        "It then says that these people were not paid after all, and all that is owed to them is due"
        " again. Taking back is written into the log with your name, and shown to each of them."
    ),
    "step.unpay.nobody": noted("Nobody was chosen who is marked as paid."),
    "step.unpay.go": noted("Yes, they were not paid"),
    "step.invite.button": noted("Invite people"),
    "step.open.button": noted("Open …"),
    "step.open.title": noted("Open for prices?"),
    "step.open.text": noted(
        "From then on settings and people are fixed. Whoever has a link can name a price. Opening"
        " takes seconds, or minutes where there are groups or strata: the campaign's page shows how"
        " far it is."
    ),
    "step.open.go": noted("Open the campaign"),
    "step.discard.button": noted("Discard …"),
    "step.discard.title": noted("Discard the draft?"),
    "step.discard.text": noted(
        "It disappears, with everybody who was invited. Links that were sent become worth nothing."
    ),
    "step.discard.go": noted("Discard it"),
    "step.close-bidding.button": noted("Close and decide …"),
    "step.close-bidding.title": noted("Close naming prices?"),
    "step.close-bidding.text": noted(
        "Nobody can name a price afterwards. Privacy losses and payments are computed in the"
        " background, and then fixed for good."
    ),
    "step.close-bidding.go": noted("Close and decide"),
    "step.cancel.button": noted("Cancel …"),
    "step.cancel.title": noted("Cancel the campaign?"),
    "step.cancel.text": noted(
        "It ends for good, without a decision. Whoever has named a price keeps the participation fee."
    ),
    "step.cancel.go": noted("Cancel the campaign"),
    "step.release.button": noted("Release …"),
    "step.release.title": noted("Release the average?"),
    "step.release.text": noted(
        "No more values are taken, the average is drawn once, and the key to the values is destroyed"
        " as the settings say. This cannot be undone or repeated."
    ),
    "step.release.go": noted("Release it"),
    "step.close.button": noted("Close …"),
    "step.close.title": noted("Close the campaign?"),
    "step.close.text": noted(
        "It cannot be opened again. Record, log and receipts stay available, and people can still be marked as paid."
    ),
    "step.close.go": noted("Close it"),
    "links.gone": noted("These links are not shown any more. A link that is lost can be replaced below."),
    "renewed.busy": noted("No link can be replaced while the average is being drawn. Try again in a moment."),
    "paying.changed": noted("What is due has changed since you looked, so nothing was marked. Look again."),
    "paying.awaited_bid": noted("Who has not named a price yet ({number})"),
    "paying.awaited_delivery": noted("Who has not given her data yet ({number})"),
    "paying.promised": noted("Payments that were decided, as in the record"),
    "paying.dropped": noted("to people who dropped out"),
    "paying.withdrawn": noted("to people who withdrew after the decision"),
    "paying.awaited": noted("to people whose data are still awaited"),
    "paying.payments": noted("Owed for data"),
    "paying.fees": noted("Fees for taking part"),
    "paying.owed": noted("Owed in all"),
    "paying.paid": noted("Marked as paid"),
    "paying.above": noted("paid to people who withdrew afterwards"),
    "paying.due": noted("Still due"),
    "audit.status.holds": noted("holds:"),
    "audit.status.fails": noted("fails:"),
    "audit.status.incomplete": noted("incomplete:"),
    "audit.status.skipped": noted("not checked:"),
    "attack.verdict.failed": noted("A fault was found"),
    "attack.verdict.weak": noted("No fault found, but one could have been missed"),
    "attack.verdict.clear": noted("No fault found"),
}

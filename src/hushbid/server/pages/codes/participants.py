"""What participants and strangers are told, by the state, choice or question that it belongs to."""

from hushbid.languages import Wording, noted

CODES: dict[str, Wording] = {
    "enter.unreadable": noted(
        "This is not a personal link. It must contain a part that begins with hb_p_ or hb_device_."
    ),
    "enter.unknown": noted("This link is not valid. Ask whoever sent it to you for a new one."),
    "enter.used": noted(
        "This link was used before, on {time}, in another browser or program. It opens nothing any more."
    ),
    "enter.replaced": noted(
        "This link was replaced by a new one on {time}, and opens nothing any more. If you were sent"
        " no new one, ask why."
    ),
    "enter.ended": noted(
        "A new link was made for you on {time}. It ended what was opened with the old one, in this browser too."
    ),
    "enter.closed": noted("This was ended on {time}, from another device on which your part was open."),
    "enter.left": noted("Whoever had opened this left on {time}. That ended this link and what was opened with it."),
    "enter.first": noted("Open your personal link first; then this page knows whose part to show."),
    "progress.consent": noted("About it"),
    "progress.price": noted("Your price"),
    "progress.value": noted("Your answers"),
    "progress.receipt": noted("Receipt"),
    "setting.central": noted("Noise added by the platform"),
    "setting.local": noted("Noise added on people's own devices"),
    "consent.tick": noted("Please tick that you have read this and want to take part, or decline."),
    "consent.changed": noted("What this page says has changed while it was open. Please read it again."),
    "truth.truth": noted("the truth"),
    "truth.less": noted("less"),
    "truth.more": noted("more"),
    "stage.unopened.title": noted("Not open yet"),
    "stage.unopened.text": noted("This campaign has not opened. Keep your link, and come back later."),
    "stage.excluded.title": noted("You have given enough"),
    "stage.excluded.text": noted(
        "This platform limits what anybody gives up over all campaigns, and this campaign could"
        " exceed your limit. So you are not asked for anything, and nobody learns why from the result."
    ),
    "stage.declined.title": noted("You declined"),
    "stage.declined.text": noted("Thank you for letting us know. Nothing was asked of you, and nothing will be."),
    "stage.withdrawn.title": noted("You withdrew"),
    "stage.withdrawn.text": noted(
        "What you had given has been erased and will not be used. Backups made before, and for a"
        " while the database's own files, may still hold your price."
    ),
    "stage.bid.title": noted("Your price is in"),
    "stage.bid.text": noted(
        "When naming prices ends, the platform decides from whom to buy what. Then open your link"
        " again in this browser: you will see your offer here."
    ),
    "stage.bid_late.title": noted("Your price is in"),
    "stage.bid_late.text": noted(
        "Naming prices has ended, and the decision is about to be made. Open your link again in this"
        " browser to see your offer."
    ),
    "stage.late.title": noted("Too late to name a price"),
    "stage.late.text": noted(
        "The time for naming prices has passed, so you cannot take part in this campaign any more. You gave nothing."
    ),
    "stage.absent.title": noted("This campaign went on without you"),
    "stage.absent.text": noted(
        "Naming prices ended before you answered. You gave nothing, and nothing of yours was used."
    ),
    "stage.deciding.title": noted("Being decided"),
    "stage.deciding.text": noted(
        "Naming prices has ended. The platform is working out from whom to buy what; this takes"
        " moments, or minutes if many people take part."
    ),
    "stage.not_bought.title": noted("Nothing was bought from you"),
    "stage.not_bought.text": noted(
        "For the prices that were named, the platform did better without your answers. You give"
        " nothing, and nothing of yours is used."
    ),
    "stage.offer_late.title": noted("Too late to give your answers"),
    "stage.offer_late.text": noted(
        "The time for giving answers has passed. You lose nothing, and nothing of yours is used."
    ),
    "stage.delivered.title": noted("Thank you, it has arrived"),
    "stage.delivered.text": noted(
        "Your part is done, and your payment is due whatever the others do. Until the average is"
        " drawn you may still withdraw."
    ),
    "stage.releasing.title": noted("The average is being drawn"),
    "stage.releasing.text": noted("No more answers are taken. In a moment the result is here."),
    "stage.dropped.title": noted("The campaign is over"),
    "stage.dropped.text": noted("You did not give your answers in time, so they were not used, and you lost nothing."),
    "stage.done.title": noted("Done, with thanks"),
    "stage.done.text": noted(
        "The average is out. Below you see what it cost you and what you earn; keep the receipt as your proof."
    ),
    "stage.nothing_bought.title": noted("Nothing was bought"),
    "stage.nothing_bought.text": noted(
        "Too few people took part, or their prices were out of reach. Nobody gave any answers."
    ),
    "stage.undelivered.title": noted("The campaign ended without a result"),
    "stage.undelivered.text": noted("Nobody's answers were used, and there is no average."),
    "stage.cancelled.title": noted("The campaign was cancelled"),
    "stage.cancelled.text": noted("It ended before anything was bought. Nobody gave any answers."),
    "really.decline.title": noted("Decline?"),
    "really.decline.text": noted(
        "You will not be asked again in this campaign, and cannot change your mind later. You need not give a reason."
    ),
    "really.decline.go": noted("Yes, I decline"),
    "really.others.title": noted("End all other devices?"),
    "really.others.text": noted(
        "Your part stays open here and nowhere else. Links that nobody has used open nothing any"
        " more. What was said or delivered elsewhere stays. That you did this stands in the"
        " campaign's log."
    ),
    "really.others.go": noted("Yes, end them"),
    "really.leave.title": noted("Leave?"),
    "really.leave.text": noted(
        "This browser shows your part no more, and the link you came with opens nothing any more,"
        " here neither. If you delivered from here, you can withdraw only with a link that you make"
        " here before you leave. Answers that this browser keeps without noise for this server are"
        " erased. What you were shown when you named your price, and a message to which noise was"
        " added, stay in this browser: they protect you if you come back."
    ),
    "really.leave.go": noted("Yes, leave"),
    "really.withdraw.title": noted("Withdraw?"),
    "really.withdraw.text": noted("You cannot come back to this campaign afterwards."),
    "really.withdraw.before": noted(
        "Your price is erased and not counted. Backups made before, and for a while the database's"
        " own files, may still hold it."
    ),
    "really.withdraw.promised": noted(
        "Nothing is taken from you. Your price stays in the confidential record, because others'"
        " payments followed from it."
    ),
    "really.withdraw.after_central": noted(
        "Your answers are erased and not used. You will not be paid for them. Your price stays in"
        " the confidential record, because others' payments followed from it."
    ),
    "really.withdraw.after_local": noted(
        "What you sent, your answers with noise, is erased and not used. You will not be paid for"
        " it. It was sent, though, so your privacy account keeps the loss."
    ),
    "really.withdraw.go": noted("Yes, withdraw"),
    "offer.out_of_range": noted("Your answer must be a number from {low} to {high}."),
    "asked.yes": noted("Yes"),
    "asked.no": noted("No"),
    "asked.pick": noted("Please choose one of the answers."),
    "visit.withdraw": noted(
        "Your price is erased and not counted. Backups made before, and for a while the database's"
        " own files, may still hold it. The key to your answers is destroyed, and they stay unopened."
    ),
    "visit.next.title": noted("It is decided, and the answers are there"),
    "visit.next.text": noted(
        "Everybody gave her answers with her price, so nobody has to come back. The keys to answers"
        " that are not bought are destroyed. Release when you like: until then people may still"
        " withdraw."
    ),
    "visit.stage.bid.title": noted("Your price and your answers are in"),
    "visit.stage.bid.text": noted(
        "You need not come back. When it is decided what is bought, this page shows what you are paid."
    ),
    "visit.stage.bid_late.title": noted("Your price and your answers are in"),
    "visit.stage.bid_late.text": noted(
        "Naming prices has ended, and the decision is about to be made. You need not do anything:"
        " your answers are sealed, and stay so unless they are bought; otherwise their key is"
        " destroyed."
    ),
    "visit.stage.not_bought.title": noted("Nothing was bought from you"),
    "visit.stage.not_bought.text": noted(
        "For the prices that were named, the platform did better without your answers. Nobody has"
        " opened them, and their key is destroyed."
    ),
    "visit.stage.delivered.title": noted("Your answers were bought"),
    "visit.stage.delivered.text": noted(
        "You need not do anything more, and your payment is due whatever the others do. Your answers"
        " are opened once, when the average is drawn. Until then you may still withdraw."
    ),
    "visit.stage.dropped.title": noted("The campaign is over"),
    "visit.stage.dropped.text": noted(
        "The key to your answers was gone before the average was drawn, so they were not used, and you lost nothing."
    ),
    "visit.stage.nothing_bought.title": noted("Nothing was bought"),
    "visit.stage.nothing_bought.text": noted(
        "Too few people took part, or their prices were out of reach. Nobody's answers were opened,"
        " and the keys to all of them are destroyed."
    ),
    "visit.stage.cancelled.title": noted("The campaign was cancelled"),
    "visit.stage.cancelled.text": noted(
        "It ended before anything was bought. Nobody's answers were opened, and the keys to all of them are destroyed."
    ),
    "estimate.interval": noted(
        "In at least {level} of campaigns like this one the true average is no further than ± {half}"
        " away, noise and missing values included, as long as prices and missing values have nothing"
        " to do with what people's values are. The margin is rounded up generously, so that it does"
        " not tell who gave no value."
    ),
    "estimate.interval_staff": noted(
        "In at least {level} of campaigns like this one the true average is no further than ± {half}"
        " away, noise and missing values included, as long as prices and missing values have nothing"
        " to do with what people's values are. This margin follows from who delivered: everybody else"
        " is shown a coarser one."
    ),
    "given_up.kinds.reserved": noted("reserved"),
    "given_up.kinds.promised": noted("promised"),
    "given_up.kinds.delivered": noted("given up"),
    "public.state.draft": noted("This campaign has not opened."),
    "public.state.bidding": noted("People are naming their prices."),
    "public.state.allocating": noted("It is being decided from whom to buy what."),
    "public.state.nothing_bought": noted("It is over: nothing was bought."),
    "public.state.delivering": noted("People are giving their values."),
    "public.state.releasing": noted("The average is being drawn."),
    "public.state.undelivered": noted("It is over: there is no result."),
    "public.state.released": noted("The average has been drawn, once and for all."),
    "public.state.closed": noted("It is over and closed."),
    "public.state.cancelled": noted("It was cancelled."),
    "payout.label_email": noted("E-mail address"),
    "payout.label_iban": noted("IBAN"),
    "payout.label_panel": noted("Panel id"),
    "payout.hint_email": noted("The one under which you can be paid."),
    "payout.hint_iban": noted("Of the account that you want to be paid into. Spaces do not matter."),
    "payout.hint_panel": noted("As your panel knows you."),
    "payout.wrong_email": noted("This is no e-mail address, such as name@example.org. Nothing was stored."),
    "payout.wrong_iban": noted("This is no IBAN: its length or its check digits are not right. Nothing was stored."),
    "payout.wrong_panel": noted("A panel id has 1 to 100 characters in one line. Nothing was stored."),
}

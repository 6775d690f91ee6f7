"""What the consent page says. Each sentence is a promise with a name, which tests of what it promises refer to."""

from hushbid.languages import Wording, noted, noted_forms

CODES: dict[str, Wording] = {
    "consent.fee": noted("Whoever names a price also gets {fee} for taking part, even if nothing is bought."),
    "consent.key_at_once": noted("The key is destroyed as soon as the average has been drawn."),
    "consent.key_later": noted("The key is destroyed {days} days after the average has been drawn."),
    "consent.key_next_day": noted("The key is destroyed one day after the average has been drawn."),
    "consent.rights": noted("What you can rely on"),
    "consent.right_decline": noted("Taking part is up to you. You may decline now, without giving a reason."),
    "consent.right_withdraw": noted(
        "You may withdraw until the average is drawn, except while the decision is being computed."
        " Your answers are then erased and not used; your price is erased, too, unless payments have"
        " already been decided with it."
    ),
    "consent.fee_kept": noted("You keep the participation fee even then."),
    "consent.fee_lost": noted("The participation fee is then not paid."),
    "consent.right_export_payout": noted(
        "You can download everything that is stored about you, except your answers and where you are"
        " paid, which stay sealed; and at the end a signed receipt that nobody can change unnoticed."
    ),
    "consent.right_export": noted(
        "You can download everything that is stored about you, except your answers, which stay"
        " sealed; and at the end a signed receipt that nobody can change unnoticed."
    ),
    "consent.needs_script": noted(
        "Because the noise is added in your browser, giving your answers needs JavaScript."
        " Everything else works without."
    ),
    "consent.until": noted("Prices can be named until {time}."),
    "consent.agree": noted("I have read this and want to take part."),
    "told.short": noted("In short"),
    "told.give": noted("What you give"),
    "told.give_later": noted("A price; and your answers, if something is bought from you."),
    "told.give_once": noted("A price and your answers, which are opened only if something is bought from you."),
    "told.one_question": noted("There is one question."),
    "told.questions": noted("There are {number} questions."),
    "told.earn": noted("What you may earn"),
    "told.earn_text": noted(
        "From nothing, if you ask for too much, to {high} on average, if you ask for very little;"
        " times when nothing is bought are counted."
    ),
    "told.come": noted("How often you come here"),
    "told.come_twice": noted(
        "Twice: now to name a price, and again once it is decided, to give your answers if something"
        " is bought. This server sends no reminder, so look here again yourself."
    ),
    "told.come_by": noted("Answers are taken until {time}."),
    "told.come_same": noted("Use the same browser on the same device both times."),
    "told.come_once": noted(
        "Once. Come back only if you want to: to see the result, to take everything back, to fetch your receipt."
    ),
    "told.paid": noted("How you are paid"),
    "told.paid_text": noted(
        "Whoever organises the campaign pays you; this server keeps the account, but moves no money."
    ),
    "told.until": noted("Until when"),
    "told.asks": noted("Who asks, and what for"),
    "told.controller": noted("Responsible for your data"),
    "told.purpose": noted("What it is for"),
    "told.contact": noted("Questions and complaints"),
    "told.how": noted("What happens"),
    "told.how_price": noted(
        "You name a price: for letting your answers count in an average, at a risk that is explained below."
    ),
    "told.how_decide": noted(
        "From everybody's prices the platform works out from whom to buy, and at what risk. From you"
        " it may buy nothing, and never at a larger risk than the one below."
    ),
    "told.how_central": noted(
        "If it buys, you type your answers in. They are sealed, and noise is added once, when the average is computed."
    ),
    "told.how_local": noted(
        "If it buys, your browser adds noise to your answers before anything leaves it. You see exactly what is sent."
    ),
    "told.how_paid": noted(
        "Then your payment is due, whatever the others do. It is never less than your own price for what is bought."
    ),
    "told.payout_none": noted("This server does not ask where to pay you."),
    "told.payout_email": noted("You are asked for an e-mail address for that, which is for the payer only."),
    "told.payout_iban": noted("You are asked for a bank account (IBAN) for that, which is for the payer only."),
    "told.payout_panel": noted("You are asked for your id in a panel for that, which is for the payer only."),
    "risk.heading": noted("What is the risk?"),
    "risk.imagine": noted("Imagine that {observer} wants to find out about you:"),
    "risk.observer": noted("somebody who knows you and sees the result"),
    "risk.statement": noted("Is what I suspect about this person's answers true?"),
    "risk.start": noted(
        "Suppose they know everything except the answers that you give, and can still only guess, as"
        " with a coin. How often would they be right?"
    ),
    "risk.without": noted("If you do not take part"),
    "risk.without_text": noted("50 out of 100"),
    "risk.with": noted("If you take part"),
    "risk.with_text": noted("at most {most} out of 100"),
    "risk.limit": noted("That is a limit, not a forecast: less may be learned, but never more."),
    "risk.all": noted("The limit covers all your answers together."),
    "risk.others": noted(
        "What the average tells about people in general, it tells about you as well, whether you take part or not."
    ),
    "risk.factor": noted(
        "Somebody who starts from another guess than 50 out of 100 ends elsewhere; the odds grow to"
        " at most {factor} times what they were."
    ),
    "risk.picture": noted("{number} out of 100 dots are filled"),
    "risk.picture_text": noted(
        "Dots for how likely somebody is to be right: 50 without you, and in another colour those"
        " that what you give can add at most."
    ),
    "sees.heading": noted("Who can see my answers?"),
    "sees.buyer": noted("Can the buyer?"),
    "sees.buyer_central": noted(
        "No. This server never shows them your answers: they get an average with noise. If they run"
        " this server themselves, the next line is about them."
    ),
    "sees.buyer_local": noted(
        "No. Your answers never leave your browser. What is sent has noise added, and the limit"
        " above holds for whoever sees that."
    ),
    "sees.server": noted("Can whoever runs this server?"),
    "sees.server_central": noted(
        "Yes, as long as there is a key: your answers are stored sealed, and the key lies on the"
        " server. {key} You have to trust them with it."
    ),
    "sees.server_once": noted(
        "Yes, as long as there is a key: your answers are stored sealed with a key of their own,"
        " which lies on the server. If they are not bought, it is destroyed as soon as that is"
        " decided. Otherwise: {key} You have to trust them with it."
    ),
    "sees.server_local": noted(
        "Only with the noise. But this page comes from them: if you do not trust them at all, give"
        " your answers with the program hushbid.client instead."
    ),
    "sees.hacker": noted("Can a hacker?"),
    "sees.hacker_central": noted(
        "Not with a stolen database or backup: your answers are sealed there, and the key is"
        " elsewhere. Whoever takes over the server itself can, until the key is destroyed."
    ),
    "sees.hacker_local": noted(
        "Only with the noise: nothing else is on the server. But whoever takes the server over"
        " before you answer could show you another page."
    ),
    "sees.court": noted("Can a court?"),
    "sees.court_central": noted(
        "Whoever runs this server could be ordered to open them until the key is destroyed. After that nobody can."
    ),
    "sees.court_local": noted("Only with the noise: nothing else is there to be handed over."),
    "sees.price": noted("And my price?"),
    "sees.price_text": noted(
        "The analysts see it, and your payment, how you were invited, and whether you answered,"
        " delivered or withdrew. Auditors see the same under a pseudonym. A price may itself tell"
        " something about you: the limit above does not count that."
    ),
    "sees.world": noted("What does everybody else see?"),
    "sees.world_public": noted("The average with noise, how many people were invited, and what was asked."),
    "sees.world_invited": noted(
        "How many people were invited, and what was asked. Whoever was invited also sees the average with noise."
    ),
    "kept.heading": noted("How long what is kept"),
    "kept.answer_central": noted("Your answers"),
    "kept.answer_local": noted("Your answers with noise"),
    "kept.answer_text": noted(
        "Sealed, and unreadable for everybody once the key is destroyed. {key} Without an average it"
        " is destroyed as soon as the campaign ends. Until the one or the other they stay here,"
        " however long that takes."
    ),
    "kept.answer_unbought": noted(
        "If nothing is bought from you, the key to your answers is destroyed as soon as that is"
        " decided, and they were never opened."
    ),
    "kept.price": noted("Your price"),
    "kept.price_text": noted(
        "In the campaign's confidential record, under a pseudonym, with what was decided and paid."
        " This server does not delete it by itself. If you withdraw before the decision, it is"
        " erased; backups made before, and for a while the database's own files, may still hold it."
    ),
    "kept.agreement": noted("Your agreement"),
    "kept.agreement_text": noted(
        "When you agreed to what: in the campaign's log and on your receipt, also if you decline or withdraw later."
    ),
    "kept.payout": noted("Where to pay you"),
    "kept.payout_text": noted_forms(
        "Destroyed {days} day after the campaign is over.", "Destroyed {days} days after the campaign is over."
    ),
    "kept.storage": noted("Outside this server"),
    "offer.range": noted("A number from {low} to {high}."),
    "strata.hers": noted(
        "Whoever invited you put you into the group “{stratum}”. What is estimated is a combination"
        " of the averages of groups, each times its number: {weights}."
    ),
    "asked.heading": noted("What is asked"),
    "asked.all": noted(
        "You answer all of these questions, or none: whoever leaves one open gives nothing, and is"
        " not paid for it. The risk covers all your answers together."
    ),
    "asked.yes_no": noted("Yes or no."),
    "asked.choice": noted("One of: {answers}."),
    "visit.deadline": noted("If nothing is decided before {time}, your answers are destroyed unopened, too."),
    "visit.how_both": noted(
        "You name a price, for letting your answers count in an average at a risk that is explained"
        " below, and give your answers. They are sealed on arrival, with a key of their own."
    ),
    "visit.how_opened": noted(
        "If it buys, your answers are opened once, when the average is computed and noise is added."
        " If it does not, their key is destroyed, and they stay unopened."
    ),
}

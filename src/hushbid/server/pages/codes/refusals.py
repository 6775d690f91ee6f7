"""Why something is refused, by the code that the refusal carries."""

from hushbid.languages import Wording, noted

CODES: dict[str, Wording] = {
    "field.missing": noted("Please fill this in."),
    "field.number": noted("Please write a number in digits, such as 7.5."),
    "field.thousands": noted("Please write the number without a separator for thousands."),
    "field.whole": noted("Please write a whole number."),
    "field.time": noted("Please give date and time."),
    "field.once": noted("Something is missing that this page had put into its form. Please send it again."),
    "field.too_fine": noted("The currency has {decimals} decimals; this amount is finer, or too large."),
    "refused.moved_on": noted(
        "This came too late or twice: the campaign has moved on, and nothing was changed. This is where you stand now."
    ),
    "refused.no_receipt": noted("There is no receipt yet: the campaign is not over."),
    "problem.400.title": noted("This cannot be read"),
    "problem.400.text": noted("What was sent is not what this page expects. Go back and try again."),
    "problem.403.title": noted("Not for you"),
    "problem.403.text": noted("This page or step is for somebody else. Nothing was changed."),
    "problem.404.title": noted("There is nothing here"),
    "problem.404.text": noted("The address may be mistyped, or what was here has been removed."),
    "problem.405.title": noted("Not this way"),
    "problem.405.text": noted("This address does not take requests of this kind."),
    "problem.409.title": noted("That is not possible any more"),
    "problem.409.text": noted("Something else was said or done before, and that stands. Nothing was changed."),
    "problem.413.title": noted("Too much at once"),
    "problem.413.text": noted("What was sent is larger than this server takes. Nothing was stored."),
    "problem.422.title": noted("This is not allowed"),
    "problem.422.text": noted("Something in what was sent is not allowed. Go back, mend it and send it again."),
    "problem.429.title": noted("Too many attempts"),
    "problem.429.text": noted("Please wait a little before you try again."),
    "problem.500.title": noted("A fault of ours"),
    "problem.500.text": noted("The server has a fault of its own. Nothing of what you sent was kept in its log."),
    "problem.503.title": noted("Not now"),
    "problem.503.text": noted("The server is busy or starting. Please try again in a moment."),
    "problem.forged.title": noted("This form is not valid any more"),
    "problem.forged.text": noted(
        "It was opened with another link or before you logged in again, or it did not come from this"
        " page. Nothing was changed. Go back, reload the page, and send it again."
    ),
    "form.too_long": noted("Please write at most {most} characters; these are {got}."),
    "form.control": noted("Please leave out control characters."),
    "form.one_line": noted("Please write it in one line."),
    "form.pick": noted("Please choose one of these."),
    "form.between": noted("Please write a number from {low} to {high}."),
    "form.least": noted("Please write a number of at least {low}."),
    "form.most": noted("Please write a number of at most {high}."),
    "form.above": noted("Please write a number above {above}."),
    "form.percent": noted("Please write a number above 0, at most {most}."),
    "form.range": noted("The largest value must be above the smallest."),
    "form.variance": noted("At most {most}, a quarter of the squared width of the range."),
    "form.twice": noted("This name is taken already: each needs its own."),
    "form.answers": noted("Please give 2 to {most} different answers, one a line."),
    "form.not_zero": noted("Please write a number other than 0."),
    "form.all_shares": noted("The shares must add up to 100 %; they come to {total} %."),
    "form.price_range": noted("The high price must be above the low one."),
    "form.currency": noted("Please write three capital letters, such as EUR."),
    "form.later": noted("This must be later than the deadline for prices."),
    "form.past": noted("This time has passed: please choose a later one."),
    "form.below_fees": noted(
        "The participation fees of all planned people already come to this much: please write a"
        " larger amount, or a smaller fee."
    ),
    "form.needs_deadline": noted("Please set this deadline: the campaign is to move on by itself."),
    "form.pilot_missing": noted("Please choose a file with the prices of a pilot, and press “Use this file”."),
    "form.pilot_large": noted("The file is larger than {most} MB."),
    "form.pilot_column": noted("The file needs a first line with names, and a column called price or bid."),
    "form.pilot_unreadable": noted("This is no CSV file that can be read."),
    "form.pilot_row": noted("Line {row} of the file holds no price: a number of at least 0 is needed."),
    "form.pilot_few": noted("A pilot needs at least {least} people; the file has {got}."),
    "form.pilot_same": noted("All prices in the file are the same; a pilot needs people who differ."),
    "refused_setting.form": noted(
        "These settings cannot be joined in one campaign. Change the goal, the place of the noise or the strata."
    ),
    "refused_setting.prior": noted(
        "These prices cannot be used here. A distribution must be one that is known, such as"
        " uniform:1,3 or lognormal:0,0.5, with prices that can be paid; where no limit on the privacy"
        " loss can be kept, its least price must be above 0. An amount on average needs one"
        " distribution for everybody where people are in strata or noise is added in browsers."
    ),
    "refused_setting.bounds": noted(
        "This range cannot be used: the largest value must be above the smallest, and both must be"
        " numbers of a usual size."
    ),
    "refused_setting.variance": noted(
        "This variance cannot be used: it must be above 0 and possible within the range."
    ),
    "refused_setting.questions": noted(
        "These questions cannot be asked together: there are too many answers, or texts are too long."
    ),
    "refused_setting.strata": noted(
        "These strata cannot be used here: they need names that differ and shares that add up to 100"
        " %, and cannot be joined with a single yes/no question or a stated accuracy where noise is"
        " added in browsers."
    ),
    "refused_setting.budget": noted("This amount cannot be spent so. It must be above the fees for everybody."),
    "refused_setting.hard_budget": noted(
        "This amount cannot be kept so. It must be above the fees for everybody and one coin for each person."
    ),
    "refused_setting.standard_error": noted(
        "This accuracy cannot be had so: people would lose more privacy than can be told, or it"
        " cannot be joined with the other settings. Try a larger error."
    ),
    "refused_setting.buyer_weight": noted("This number cannot be used here: try one of a usual size."),
    "refused_setting.max_privacy_loss": noted(
        "This limit cannot be kept here: choose another goal or put the noise on this server."
    ),
    "refused_setting.max_correlation": noted(
        "This protection cannot be had here: with noise in people's browsers it goes with “An error"
        " costs me” only, and not with a single yes/no question. Choose “No protection”, or noise on"
        " this server."
    ),
    "refused_setting.people": noted("So many people cannot be counted with: everybody's kind must be among them."),
    "refused_setting.limits": noted("People cannot state limits of their own here."),
    "invite.one": noted("Fill in one of the three: ids, a file, or a number of people without a name."),
    "invite.whole": noted("Please write a whole number from 1 to {most}."),
    "uninvited.known": noted("Nobody was invited: somebody on this list is in the campaign already, or it has opened."),
    "uninvited.by_id": noted(
        "Nobody was invited: in this campaign people are invited by their ids, with their group or"
        " kind where there are any. On a server with a privacy cap nobody can be invited without a"
        " name."
    ),
    "uninvited.list": noted(
        "Nobody was invited: please give one id a line, or a table with the columns id, group and"
        " stratum, for at most 100,000 people in all."
    ),
    "uninvited.group": noted(
        "Nobody was invited: the group of person {number} on the list is missing, or is none of the campaign's groups."
    ),
    "uninvited.stratum": noted(
        "Nobody was invited: the kind (stratum) of person {number} on the list is missing, or is"
        " none of the campaign's."
    ),
    "uninvited.again": noted("Nobody was invited: person {number} on the list is there twice."),
    "uninvited.id": noted(
        "Nobody was invited: the id of person {number} on the list cannot be used. It needs 1 to 200"
        " characters, must not look like P-00001, and must not stand there twice."
    ),
    "refused_step.moved": noted(
        "This is not possible any more, or somebody else did it already: the campaign has moved on,"
        " and nothing was changed."
    ),
    "refused_step.running": noted("The decision is being made just now: wait a moment."),
    "refused_step.opening": noted("The campaign is being opened already: its page shows how far that is."),
    "refused_step.people": noted(
        "At least {least} people must be invited who may still give something up. Invite more, or"
        " ask for fewer in the draft."
    ),
    "refused_step.groups": noted(
        "Somebody's group is none of the groups that the draft names. Remove those people and invite"
        " them again, or change the draft."
    ),
    "refused_step.strata": noted(
        "Everybody must be of one of the kinds (strata) that the draft names, and of each kind"
        " somebody must be invited who may still give something up."
    ),
    "refused_step.draft": noted("The draft was changed while it was being opened: look at it again, and open it then."),
    "refused_step.privacy_cap": noted(
        "With this draft somebody could give up more than this server allows anybody. Lower the"
        " limit on the privacy loss, or the goal."
    ),
    "refused_step.minimum_people": noted(
        "The draft is content with fewer people than this server allows. Change the least number of people."
    ),
    "refused_step.bid_by": noted("The time until which prices can be named has passed already. Change the draft."),
    "refused_step.deliver_by": noted("The time until which answers are taken has passed already. Change the draft."),
    "refused_step.accept_rounding": noted(
        "Rounding payments up would take more than 5 % of the budget: the campaign would not open."
        " Invite fewer people, choose a larger budget or one that is never exceeded, or accept it in"
        " the draft."
    ),
    "refused_step.spending_limit": noted(
        "Some prices could make the campaign cost more than the draft allows to spend. Raise that"
        " spending limit, or lower the goal."
    ),
    "refused_step.reason": noted("Please give a reason of 1 to {most} characters."),
    "refused_step.accept_unpaid": noted("People are still unpaid: pay them, or tick that you accept it."),
    "refused_step.accept_nobody": noted(
        "Nobody has delivered yet: wait, or tick that you accept that there will be no average."
    ),
}

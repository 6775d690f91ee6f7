"""What a campaign is: its states, its settings, what everybody may see of it, and who may do what when. No input or
output happens here.

In reading order:

==========  ============================================================================================
`states`    the life of a campaign, and of one person's part in it
`checks`    texts, numbers and times that an analyst sends
`answers`   people's answers to several questions
`payout`    where a person is to be paid, and under which reference
`settings`  everything that is fixed about a campaign before anybody bids
`agreement`  what a person agrees to, word by word, and its version
`entities`  a campaign and a participant as they are stored
`access`    links and secrets: how a participant comes in
`rules`     who may do what when, and who is owed what
`views`     what a person with a certain role gets to see
`payment_views`  the same of payments
==========  ============================================================================================
"""

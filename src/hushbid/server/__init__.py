"""The campaign server: a data buyer installs it, participants have reason to trust it.

From the bottom; each package imports only what stands above it here:

==================  ====================================================================================
`faults`            how a fault that nobody foresaw is written down
`failpoints`        named moments at which a test kills the server
`vault`             keys to people's values: one per campaign, or one for each person's answers; destroyed in the end
`model`             what a campaign is and who may do what when, without any input or output
`installation`      the folder of an installation, its keys and limits, and what stands in it once and for all
`store`             where everything is kept: SQL lives here
`service`           the use cases; its `Service` is what everything above calls
`admin`             accounts and backups, beside a running server
`http`              the HTTP interface
`pages`             the pages for participants, analysts and auditors
`bots`              simulated participants, who play whole campaigns: as a demonstration, as a test and as load
`demo`              a server with campaigns in every state, to look at
==================  ====================================================================================

Nothing here is imported by ``import hushbid``.
"""

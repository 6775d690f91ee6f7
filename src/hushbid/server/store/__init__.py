"""Where everything is kept: SQL stops here. Functions take a connection and plain values, and return plain values.

In reading order:

==============  ========================================================================================
`schema`        the tables, and how values are written in their columns
`database`      opening an SQLite file or PostgreSQL; what one transaction works with
`campaigns`     campaigns, their records and releases
`participants`  people in campaigns, what they agreed to, and where they are to be paid, sealed
`links`         links, and the secrets they were exchanged for
`privacy_account`        people across campaigns, and what each has given up
`events`        the hash chain of each campaign
`jobs`          work in the background, and answers to requests that must not be carried out twice
`accounts`      users, their sessions and tokens, and failed log-ins
`migrate`       creating the tables, and tying a database to its folder; `migrations` has the step
`backup`        a database as one file that either store can be restored from
==============  ========================================================================================
"""

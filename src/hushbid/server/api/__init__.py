"""The campaign server's HTTP interface: nothing but translation between requests and `hushbid.server.service`.

In reading order:

==============  ========================================================================================
`app`           the application: endpoints, problems, pages that are handed in, and what goes around them
`state`         what every handler has at hand: the service, threads to call it in, names of cookies
`auth`          who is asking, and logging in and out
`analyst`       what analysts ask, and auditors may read: drafts, people, each step of a campaign, its files
`participant`   what one participant asks, by her device's secret: bidding, delivering, withdrawing
`public`        what everybody may ask
`schemas`       what is sent and received where it is not the domain's own; the OpenAPI document
`idempotency`   requests that may arrive twice but must be carried out once
`exports`       files to take away: payments, log, report
`problems`      every refusal and fault as problem+json (RFC 9457)
`middleware`    what goes around every request: limits, security headers, the access log
`serve`         serving until somebody stops it
`protocol`      HTTP/1.1 with the limits that uvicorn lacks
==============  ========================================================================================
"""

from hushbid.server.api.app import create_app

__all__ = ["create_app"]

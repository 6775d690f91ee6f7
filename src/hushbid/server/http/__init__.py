"""The campaign server's HTTP interface: nothing but translation between requests and `hushbid.server.service`.

In reading order:

==============  ========================================================================================
`app`           the application: endpoints, problems, pages that are handed in, and what goes around them
`auth`          who is asking, found out before anything else is read; what every handler has at hand
`routes`        the routes of all use cases, made from their registry; logging in and out
`downloads`     files to take away, and the routes that answer with one
`schemas`       bodies and answers as JSON; the OpenAPI document
`problems`      every refusal and fault as problem+json (RFC 9457)
`middleware`    what goes around every request: limits, security headers, the access log
`serve`         serving until it is stopped, over HTTP/1.1 with limits that uvicorn lacks
==============  ========================================================================================
"""

from hushbid.server.http.app import create_app

__all__ = ["create_app"]

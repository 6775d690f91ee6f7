"""The campaign server's HTTP interface: nothing but translation between requests and `hushbid.server.service`.

The modules, from the bottom: ``problems`` turns every refusal and fault into problem+json (RFC 9457); ``frame`` goes
around everything, with limits, security headers and the access log; ``wire`` holds what is sent and received;
``shell`` is what handlers have at hand; ``callers`` finds out who is asking; ``once`` answers repeated requests;
``session``, ``campaigns``, ``conducting``, ``participation`` and ``public`` are the endpoints; ``app`` ties them
together.
"""

from hushbid.server.api.app import create_app

__all__ = ["create_app"]

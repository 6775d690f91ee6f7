"""The use cases of the campaign server; `Service` is what everything above calls."""

from hushbid.server.service.service import Service

__all__ = ["Service"]

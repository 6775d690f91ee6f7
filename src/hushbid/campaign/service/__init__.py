"""The use cases of the campaign server; `Service` is what everything above calls."""

from hushbid.campaign.service.service import Service

__all__ = ["Service"]

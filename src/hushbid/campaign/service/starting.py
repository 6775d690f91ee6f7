"""What happens before the server answers anybody: tying folder and database together, taking up what a crash left."""

from sqlalchemy import Connection, insert, select

from hushbid.campaign.home import Home
from hushbid.campaign.store.schema import installation
from hushbid.errors import CampaignError


def bind_installation(connection: Connection, home: Home) -> None:
    """Make a new database this folder's, and refuse one that belongs to another folder.

    The folder holds the claims: a database that came without its own could be made to release twice.
    """
    known = connection.execute(select(installation.c.value).where(installation.c.name == "home")).scalar()
    if known is None:
        connection.execute(insert(installation).values(name="home", value=home.name()))
    elif known != home.name():
        raise CampaignError(
            "The database belongs to the folder of another installation, whose keys and claims it needs: start the"
            " server with that folder."
        )

"""PostgreSQL that cannot be reached: whether that may pass, and what its client said of it where no password can be in it."""

import re
from urllib.parse import urlsplit

SCHEME = "postgresql://"
ANY_DRIVER = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
PIECE = r"(?:[^\s:@/?#%]|%(?!00)[0-9A-Fa-f]{2})*"
HOST = r"(?:\[[^@\]]*\]|[^:@/?#,]*)(?::\d*)?"
PLAIN_ADDRESS = re.compile(rf"{SCHEME}(?:{PIECE}(?::{PIECE})?@)?{HOST}(?:,{HOST})*(?:[/?#][^@]*)?")
PASSING = re.compile(
    r"refused|time(?:d )?out|starting up|shutting down|recovery mode|not yet accepting|is the server running"
    r"|too many (?:clients|connections)|connection slots|closed|reset by peer|temporary failure|unreachable|no route",
    re.IGNORECASE,
)
"""What libpq says of a server that is down, coming up, going down, full or cut off, and may be there in a while."""


def without_driver(address: str) -> str:
    """An address as libpq takes it; one that is not of a PostgreSQL stays as it is."""
    return ANY_DRIVER.sub(SCHEME, address, count=1) if ANY_DRIVER.match(address) else address


def is_plain(address: str) -> bool:
    """Whether an address is taken apart as its writer meant it, so that no piece of a password ends up as something else."""
    plain = without_driver(address)
    try:
        urlsplit(plain)
    except ValueError:  # which quotes it
        return False
    return PLAIN_ADDRESS.fullmatch(plain) is not None


def may_pass(said: str) -> bool:
    """Whether a server of which the client says this may be there in a while; a refused password stays refused."""
    return PASSING.search(said) is not None


def told(said: str, address: str) -> str | None:
    """The client's words in one line; ``None`` where a piece of the address's password may be among them."""
    has_secret = not is_plain(address) or "password" in address.partition("?")[2]
    return None if has_secret else " ".join(said.split())

"""Policies that climb out of the restricted built-ins, to show what holds them then."""

REACH = """
def reach(name):
    for kind in ().__class__.__base__.__subclasses__():
        if kind.__name__ == "_wrap_close":
            return kind.__init__.__globals__[name]
    raise LookupError("os is not to be reached")
"""
"""Defines ``reach``, which returns a member of the module ``os``: what a static gate exists to refuse."""


def framed(reply: bytes) -> str:
    """Source of the bytes of one frame."""
    return repr(len(reply).to_bytes(4, "big") + reply)


def forging(reply: str) -> str:
    """Source of a policy that writes the expression ``reply`` to its connection itself and ends."""
    return REACH + f"reach('write')(3, {reply})\nreach('_exit')(0)\n"

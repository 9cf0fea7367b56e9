"""Groups of commands, and how their help lists them."""

import click

WHOLE = 1000
"""Longer than any first sentence, so that none is cut."""


class CommandsInOrder(click.Group):
    """Lists the commands in the order they are used, not by the alphabet, each with its whole first sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands; sentences wrap beside the names."""
        listed = [(name, command.get_short_help_str(WHOLE)) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(listed)

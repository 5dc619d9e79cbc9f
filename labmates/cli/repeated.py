"""Options that are given twice: click takes the last and says nothing."""

from __future__ import annotations

from collections import Counter

import click


def refuse_repeated_options(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option with one value that `args` give twice, to `command` or to the verb below it that they name.

    Raises
    ------
    click.UsageError
        If there is one. Arguments that `command` can't parse pass: its own parsing says what is wrong with them.
    """
    try:
        _, rest, given = command.make_parser(ctx).parse_args(args=list(args))
        below = command.resolve_command(ctx, rest) if isinstance(command, click.Group) and rest else None
    except click.UsageError:
        return
    for parameter, times in Counter(given).items():
        single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
        if single and times > 1:
            raise click.UsageError(f"{parameter.opts[-1]} is given {times} times; it takes one value", ctx)
    if below is not None and (verb := below[1]) is not None:
        refuse_repeated_options(verb, click.Context(verb, ctx, below[0], **verb.context_settings), below[2])

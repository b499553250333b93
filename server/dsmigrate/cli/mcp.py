"""``dsmigrate mcp``: the commands as tools for agents, over standard input and output."""

from __future__ import annotations

import asyncio
import json

import click

from dsmigrate import __version__
from dsmigrate.cli import tools
from dsmigrate.languages import say

_INSTRUCTIONS = (
    "Facts about DeepSpeed configs and training scripts, from the sources of every release since 0.9: ask `check` "
    "before you change a config and after, `explain` for a key, a code or an error message, `diff` for what a change "
    "does, `memory` and `recommend` for what fits. `migrate` gives the patch that moves a DDP script to DeepSpeed. "
    "Nothing is written, and nothing of a project is executed."
)


@click.command("mcp", short_help="Start an MCP server, for agents.")
def command() -> int:
    """Serve the commands as tools for agents, by the Model Context Protocol over standard input and output.

    The tools are check, explain, diff, memory, recommend, convert and migrate, with the options of the commands. They
    answer in JSON and write nothing. It needs the package mcp: pip install "dsmigrate[mcp]".
    """
    try:
        asyncio.run(_serve())
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise click.UsageError(say('{package} is not installed: pip install "dsmigrate[mcp]"', package="mcp")) from None
    return 0


async def _serve() -> None:
    import mcp_types as types  # noqa: PLC0415 - an optional dependency
    from mcp.server.context import ServerRequestContext  # noqa: PLC0415
    from mcp.server.lowlevel import Server  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    async def listed(_: ServerRequestContext, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tools.description(name),
                    input_schema=tools.input_schema(name),
                    output_schema=tools.output_schema(name),
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for name in tools.NAMES
            ]
        )

    async def called(_: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in tools.NAMES:
            answer = tools.Answer(None, f"there is no tool {params.name}")
        else:
            answer = await tools.call(params.name, params.arguments or {})
        text = answer.error if answer.document is None else json.dumps(answer.document, indent=2)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=answer.document,
            is_error=answer.document is None,
        )

    server = Server(
        "dsmigrate", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

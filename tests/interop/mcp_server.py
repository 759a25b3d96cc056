"""A real MCP server, for `with_mcp.py`: its tools ask people before they deploy by writing a line to a file.

`release` asks in the middle of a call (protocols up to 2025-11-25), `deploy` before it (those after it too). `confirm`
asks for a yes, and gives it up after a moment to ask once more.
"""

import json
import sqlite3
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel, Field

server = MCPServer("deployer")


class Where(BaseModel):
    target: Literal["staging", "prod"] = Field(title="Where to?")
    machines: int = Field(1, ge=1, le=9)


def deployed(version, target):
    with open("deployed", "a") as file:
        file.write(f"{version} {target}\n")


@server.tool()
async def release(version: str, ctx: Context) -> str:
    where = await ctx.elicit(f"Where does {version} go?", Where)
    if where.action != "accept":
        return json.dumps([where.action])
    signed_in = await ctx.elicit_url("Sign in", "https://id.example.com/login?state=1", "sign-in-1")
    if signed_in.action == "accept":
        deployed(version, where.data.target)
    return json.dumps([where.action, where.data.model_dump(), signed_in.action])


async def ask(version: str) -> Elicit[Where]:
    return Elicit(f"Where does {version} go?", Where)


@server.tool()
async def deploy(version: str, where: Annotated[ElicitationResult[Where], Resolve(ask)]) -> str:
    if where.action == "accept":
        deployed(version, where.data.target)
    return json.dumps([where.action])


class Nothing(BaseModel):
    pass


async def has_asked():
    with sqlite3.connect("memory.db") as memory:
        while not memory.execute("SELECT 1 FROM wait WHERE run IS NOT NULL").fetchall():  # noqa: ASYNC110
            await anyio.sleep(0.05)  # it is another process that writes


@server.tool()
async def confirm(ctx: Context) -> str:
    async with anyio.create_task_group() as asking:
        asking.start_soon(ctx.elicit, "Delete it?", Nothing)
        await has_asked()
        asking.cancel_scope.cancel()
    return json.dumps([(await ctx.elicit("Delete it?", Nothing)).action])


server.run()

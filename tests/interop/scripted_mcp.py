"""`with_mcp.py`, with a server of the tests. The first argument is the protocol's version, or `auto`."""

import asyncio
import sys
from pathlib import Path

import with_mcp

protocol, *asked = sys.argv[1:]
server = str(Path(__file__).with_name("mcp_server.py"))
asyncio.run(with_mcp.main(*asked, sys.executable, server, mode=protocol))

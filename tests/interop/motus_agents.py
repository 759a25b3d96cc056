"""The agent that the real Motus runs in the tests. A message says, as JSON, what it is to wait for."""

import asyncio
import json
import os

from motus.models import ChatMessage
from motus.serve.interrupt import interrupt


async def agent(message, state):
    """`{"at_once": [payload, …]}`, `{"in_turn": […]}` and the like.

    The reply is what it is to `say`, how many messages it is to `count` before this one, and what came back, as JSON.
    """
    wanted = json.loads(message.content)
    if "raise" in wanted:
        raise RuntimeError(wanted["raise"])
    while "until" in wanted and not os.path.exists(wanted["until"]):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.05)
    said = [wanted["say"]] if "say" in wanted else []
    said += [f"{len(state)} before"] if "count" in wanted else []
    # `"type": 7` is what the server's own GET cannot show
    heard = list(await asyncio.gather(*(interrupt(payload) for payload in wanted.get("at_once", []))))
    if "late" in wanted:

        async def later():
            await asyncio.sleep(wanted["after_s"])
            return await interrupt(wanted["late"])

        first, second = await asyncio.gather(interrupt(wanted["first"]), later())
        heard += [first, second]
    for payload in wanted.get("in_turn", []):
        heard.append(await interrupt(payload))
    said += [json.dumps(heard)] if heard or not said else []
    response = ChatMessage(role="assistant", content=" ".join(said))
    return response, [*state, message, response]

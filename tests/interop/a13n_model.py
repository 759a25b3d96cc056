"""A scripted model behind OpenAI's chat completions, for a real a13n Service: `python a13n_model.py PORT`.

A user's message says, as JSON, which tools to call: `{"turns": [[{"name": …, "arguments": {…}}, …], …]}`. When all
turns are done the reply is the tools' results, as JSON. A result with FAIL in it makes the model refuse the request.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from aiohttp import web

FAIL = "make the model fail"
Json = dict[str, Any]


def text_of(message: Json) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def task_of(text: str) -> str:
    """What a helper is told by who delegates to it, which is wrapped; any other text as it is."""
    start = text.find('{"delegated_task"')
    if start < 0:
        return text
    wrapped, _ = json.JSONDecoder().raw_decode(text[start:])
    return str(wrapped["delegated_task"])


def turns_of(messages: list[Json]) -> tuple[int, list[Any]]:
    """Where the last message with a script stands, and its turns."""
    for number in reversed(range(len(messages))):
        text = task_of(text_of(messages[number]))
        if messages[number]["role"] == "user" and (start := text.find('{"turns"')) >= 0:
            script, _ = json.JSONDecoder().raw_decode(text[start:])
            return number, script["turns"]
    return 0, []


def reply(messages: list[Json]) -> Json | None:
    """The assistant's message, or None to refuse."""
    start, turns = turns_of(messages)
    since = messages[start + 1 :]
    results = [text_of(message) for message in since if message["role"] == "tool"]
    if any(FAIL in result for result in results):
        return None
    done = sum(message["role"] == "assistant" for message in since)
    if done >= len(turns):
        return {"role": "assistant", "content": json.dumps(results)}
    calls = [
        {
            "index": number,
            "id": f"call_{start}_{done}_{number}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for number, call in enumerate(turns[done])
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


async def complete(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    said = reply(body["messages"])
    if said is None:
        return web.json_response(
            {"error": {"message": "told to fail", "type": "invalid_request_error"}}, status=400
        )
    finish = "tool_calls" if said.get("tool_calls") else "stop"
    about = {"id": "chatcmpl-1", "created": 1, "model": body["model"]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": finish}
        return web.json_response({**about, "object": "chat.completion", "choices": [choice], "usage": usage})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for delta, reason, used in ((said, None, None), ({}, finish, None), (None, None, usage)):
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        chunk = {**about, "object": "chat.completion.chunk", "choices": choices, "usage": used}
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


async def healthy(_: web.Request) -> web.Response:
    return web.Response()


if __name__ == "__main__":
    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", complete), web.get("/health", healthy)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)

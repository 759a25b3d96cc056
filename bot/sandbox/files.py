"""Files: how they are uploaded, kept and read (Slack: working with files)."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.sandbox.door import refuse

Json = dict[str, Any]
TYPES = {"json": ("application/json", "JSON"), "txt": ("text/plain", "Plain Text")}
"""By the end of a file's name: its MIME type, and how Slack calls it."""


@dataclass(slots=True)
class File:
    """A file, or the room for one: `content` (base64) is None until its bytes have come by `ticket`."""

    id: str
    app: str
    user: str
    name: str
    size: int
    ticket: str
    created: int
    title: str = ""
    content: str | None = None

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.content or "")


class Files:
    """The workspace's files by their ids."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}

    def __iter__(self) -> Iterator[File]:
        return iter(self._files.values())

    def keep(self, file: File) -> File:
        self._files[file.id] = file
        return file

    def find(self, file_id: str) -> File | None:
        return self._files.get(file_id)

    def waiting(self, ticket: str) -> File | None:
        """The room that a ticket is for, unless it has been used."""
        return next((f for f in self if secrets.compare_digest(f.ticket, ticket) and f.content is None), None)


def file_json(url: str, file: File) -> Json:
    """A file as a message has it; `url` is the workspace's."""
    ending = file.name.rpartition(".")[2].lower()
    mimetype, pretty = TYPES.get(ending, ("application/octet-stream", "Binary"))
    address = f"{url}/files/{file.id}/{file.name}"
    return {
        "id": file.id, "created": file.created, "timestamp": file.created, "name": file.name,
        "title": file.title or file.name, "mimetype": mimetype, "filetype": ending, "pretty_type": pretty,
        "user": file.user, "mode": "hosted", "editable": False, "size": file.size, "is_external": False,
        "is_public": False, "public_url_shared": False, "url_private": address,
        "url_private_download": address, "permalink": address,
    }  # fmt: skip


class FileRoutes:
    """Takes the bytes of an upload at the address that Slack gave for it, and hands files out."""

    def __init__(self, world: Any) -> None:
        self.world = world

    async def upload(self, request: web.Request) -> web.Response:
        file = self.world.files.waiting(request.match_info["ticket"])
        if file is None:
            return refuse(404, "no_such_upload")
        data = await _bytes(request)
        if len(data) != file.size:
            return refuse(400, f"the upload was announced with {file.size} bytes, not {len(data)}")
        file.content = base64.b64encode(data).decode()
        self.world.changed()
        return web.Response(text=f"OK - {len(data)}")

    async def download(self, request: web.Request) -> web.Response:
        file = self.world.files.find(request.match_info["id"])
        if file is None or file.content is None or file.name != request.match_info["name"]:
            return refuse(404, "file_not_found")
        # never a page of this host, whatever its bytes say
        headers = {
            "Content-Disposition": "attachment",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        return web.Response(body=file.data, content_type="text/plain", charset="utf-8", headers=headers)


async def _bytes(request: web.Request) -> bytes:
    """The file in a request: its body as it is, or the first part of a form."""
    if not request.content_type.startswith("multipart/"):
        return await request.read()
    part = await (await request.multipart()).next()
    return b"" if part is None else bytes(await part.read())  # type: ignore[union-attr]

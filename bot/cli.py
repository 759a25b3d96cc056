"""`askgate …`: the commands."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import cast

import click

from bot import logs
from bot.demo.demo import demo as run_demo
from bot.service import Role, Service
from core.embedded import EmbeddedError
from core.errors import StoreMismatch, StoreUnavailable
from core.settings import SettingsError, default_data_dir, load_settings

PAGE_PORT = 8086


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="askgate")
def main() -> None:
    """The Slack front end for agents that stop and ask."""


@main.command()
@click.option("--port", default=PAGE_PORT, show_default=True, help="Port of the page; 0 takes a free one.")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where the demo keeps what it knows.")
def demo(port: int, data_dir: Path | None) -> None:
    """A store, a local Slack to click in, the bot and a scripted agent, all on this machine."""
    logs.set_up("warning")
    asyncio.run(_stopped_by_line(_demo(data_dir or default_data_dir() / "demo", port)))


async def _demo(data_dir: Path, port: int) -> None:
    async with run_demo(data_dir, port) as url:
        click.echo(f"\n  askgate demo is running. Open  {url}\n")
        click.echo("  You are Ana. The agent asks in a thread of #clean-up: click to answer.")
        click.echo("  Leave a question alone until its deadline to see what silence does.")
        click.echo("  Ctrl-C stops everything; the next start finds what was pending.")
        click.echo("  Next: README.md, “Connect an agent” and “Connect a workspace”.\n")
        await _until_signal()
    click.echo("  Stopped. Nothing was lost: `askgate demo` goes on from here.")


@main.command()
@click.option("--role", type=click.Choice(["all", "web", "worker"]), default="all", show_default=True)
@click.option(
    "--set", "overrides", multiple=True, metavar="NAME=VALUE", help="A setting, over the environment."
)
def serve(role: str, overrides: tuple[str, ...]) -> None:
    """Serve a workspace: HTTP or Socket Mode, the API, and the worker."""
    asyncio.run(_stopped_by_line(_serve(cast(Role, role), overrides)))


async def _serve(role: Role, overrides: tuple[str, ...]) -> None:
    settings = load_settings(_pairs(overrides), need_slack=True)
    logs.set_up(settings.log_level)
    async with Service(settings, role) as service:
        assert service.web is not None  # noqa: S101  # every role has a port
        click.echo(f"askgate serves at {service.web.url} (role {role}). Ctrl-C stops it.", err=True)
        await _until_signal()


def _pairs(overrides: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals:
            raise SettingsError(f'--set: got "{name}"; wanted NAME=VALUE')
        found[name] = value
    return found


async def _until_signal() -> None:
    """Wait for Ctrl-C or SIGTERM. A second one ends the process at once."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)


async def _stopped_by_line(work: Awaitable[None]) -> None:
    """Do it; what keeps askgate from starting is one line on standard error and exit code 2."""
    try:
        await work
    except (SettingsError, EmbeddedError, StoreMismatch, StoreUnavailable) as error:
        click.echo(f"askgate: {error.detail}", err=True)
        raise SystemExit(2) from None

"""`askgate …`: the commands."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import cast

import click

from bot import collector, logs
from bot.commands.audit import audit
from bot.commands.bench import bench
from bot.commands.doctor import doctor
from bot.commands.gates import gates
from bot.commands.installations import installations
from bot.commands.shell import pairs, run, set_option
from bot.demo.demo import Demo, Host
from bot.demo.demo import demo as run_demo
from bot.demo.motus_server import motus_program
from bot.manifest import Wanted, public_url, written
from bot.service import Role, Service
from core.settings import SettingsError, default_data_dir, load_settings

PAGE_PORT = 8086
API_PORT = 8080
"""askgate's own default, which the papers name."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="askgate")
def main() -> None:
    """The Slack front end for agents that stop and ask."""


@main.command()
@click.option("--port", default=PAGE_PORT, show_default=True, help="Port of the page; 0 takes a free one.")
@click.option(
    "--host",
    type=click.Choice(["api", "motus"]),
    default="api",
    show_default=True,
    help="Whose agent: a scripted one on the HTTP API, or one to talk with, of a Motus server.",
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where the demo keeps what it knows.")
def demo(port: int, host: str, data_dir: Path | None) -> None:
    """A store, a local Slack to click in, the bot and an agent, all on this machine."""
    logs.set_up("warning")
    own = default_data_dir() / ("demo" if host == "api" else f"demo-{host}")
    run(_demo(data_dir or own, port, cast(Host, host)))


async def _demo(data_dir: Path, port: int, host: Host) -> None:
    if host == "motus":
        click.echo(f"\n  Starting {motus_program()} serve. That may take a minute.")
    async with run_demo(data_dir, port, API_PORT, host=host) as running:
        click.echo(f"\n  askgate demo is running. Open  {running.page}\n")
        if host == "motus":
            click.echo(
                "  You are Ana. Write “@askgate clean up” in #clean-up, and go on in the thread below it."
            )
            click.echo(
                "  Ctrl-C stops everything. The agent's server then forgets what was said, and askgate says so.\n"
            )
        else:
            _tell_of_script(running)
        await _until_signal()
    click.echo("  Stopped. What askgate knows is kept: `askgate demo` goes on from here.")


def _tell_of_script(running: Demo) -> None:
    click.echo("  You are Ana. The agent asks in a thread of #clean-up: click to answer.")
    click.echo("  Leave a question alone, or skip a day in the bar at the top, to see what silence does.")
    click.echo("  Ctrl-C stops everything; the next start finds what was pending.\n")
    click.echo(
        "  Next: let an agent of your own ask here. README.md, “Connect an agent”, with this line in it:\n"
    )
    click.echo(f'URL, KEY, CHANNEL = "{running.api}", "{running.key}", "{running.channel}"\n')


@main.command()
@click.option("--role", type=click.Choice(["all", "web", "worker"]), default="all", show_default=True)
@set_option
def serve(role: str, overrides: tuple[str, ...]) -> None:
    """Serve a workspace: HTTP or Socket Mode, the API, and the worker."""
    run(_serve(cast(Role, role), overrides))


async def _serve(role: Role, overrides: tuple[str, ...]) -> None:
    settings = load_settings(pairs(overrides), need_slack=True)
    logs.set_up(settings.log_level, settings.redaction)
    async with Service(settings, role) as service:
        assert service.web is not None  # noqa: S101  # every role has a port
        collector.settle()
        click.echo(f"askgate serves at {service.web.url} (role {role}). Ctrl-C stops it.", err=True)
        await _until_signal()


@main.command()
@click.option(
    "--url", metavar="URL", help="The public base URL, for HTTP, such as https://askgate.example.com."
)
@click.option("--socket", is_flag=True, help="For Socket Mode, which needs no public URL.")
@click.option(
    "--redirect", metavar="URL", help="With --socket and OAuth: the public base URL of the install pages."
)
@click.option("--org", is_flag=True, help="Organizations (Enterprise Grid) may install it as a whole.")
@click.option(
    "--rotation", is_flag=True, help="Tokens expire after 12 hours and are renewed. Slack keeps this on."
)
def manifest(url: str | None, socket: bool, redirect: str | None, org: bool, rotation: bool) -> None:
    """Print the manifest to make the Slack app from."""
    run(_manifest(url, socket, Wanted(public_url(redirect) if redirect else None, org, rotation)))


async def _manifest(url: str | None, socket: bool, wanted: Wanted) -> None:
    if (url is None) != socket:
        raise SettingsError("manifest: wanted either --url https://… (HTTP) or --socket (Socket Mode)")
    click.echo(written(public_url(url) if url else None, wanted), nl=False)


for command in (doctor, gates, audit, installations, bench):
    main.add_command(command)


async def _until_signal() -> None:
    """Wait for Ctrl-C or SIGTERM. A second one ends the process at once."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)

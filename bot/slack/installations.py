"""Where askgate is installed: slack_sdk's stores of installations and states, kept sealed in Redis; token renewal."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any, Final

import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.oauth.installation_store import Bot, Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.errors import TROUBLES
from core.agenda import TryAgain
from core.ids import new_token
from core.sealing import Seals, Unsealable
from core.store.store import Store

EARLY_S: Final = 2 * 3600
"""How long before a token expires it is renewed (Slack: tokens live for twelve hours)."""
RENEW_AT: Final = "renew_at"
"""Among slack_sdk's custom values: when to renew the token (s)."""
ALWAYS_MIN: Final = 10**8
"""For slack_sdk's rotator, which goes by the process's own clock: that it is time was found out by the store's."""
INSTALL: Final = "/slack/install"
"""Where somebody begins to install askgate."""
UNINSTALLED: Final = "app_uninstalled"
_USERS: Final = ("user_token", "user_refresh_token", "user_token_expires_at", "user_scopes")
"""What Slack may tell of the person who installs, and nobody here needs."""
_TIMES: Final = {"bot_token_expires_at": int, "installed_at": float}

log = structlog.get_logger(__name__)


QUIET: Final = logging.getLogger("askgate.oauth")
"""For slack_sdk and Bolt, whose lines would have codes, secrets and tokens in them: what is to be said is said here."""
QUIET.setLevel(logging.CRITICAL + 1)


def quiet_client(client: AsyncWebClient) -> AsyncWebClient:
    """A client for the calls that give tokens: it logs nothing."""
    return AsyncWebClient(base_url=client.base_url, session=client.session, retry_handlers=[], logger=QUIET)


class States(AsyncOAuthStateStore):
    """States of installations that have begun: good for ten minutes, and once."""

    def __init__(self, store: Store) -> None:
        self._store = store.installations

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(__name__)

    async def async_issue(self, *_args: Any, **_more: Any) -> str:
        state = secrets.token_urlsafe(32)
        await self._store.issue(state)
        return state

    async def async_consume(self, state: str) -> bool:
        return await self._store.consume(state)


class Installations(AsyncInstallationStore):
    """One a workspace or an organisation. Every method raises StoreUnavailable; those that read one, Unsealable.

    The name of an installation is the id of its workspace, or of the organisation if it is for all of that.
    """

    def __init__(self, store: Store, seals: Seals) -> None:
        self._store = store
        self._kept = store.installations
        self._seals = seals

    @property
    def logger(self) -> logging.Logger:
        return logging.getLogger(__name__)

    @property
    def _now_s(self) -> int:
        return self._store.clock.now_ms() // 1000

    async def find(self, name: str) -> Installation | None:
        sealed = await self._kept.get(name)
        return _loaded(self._seals.open(name, sealed)) if sealed else None

    async def listed(self) -> dict[str, tuple[Installation | None, bool]]:
        """Each by its name (None for one that no key opens), and whether the first key seals it."""
        found: dict[str, tuple[Installation | None, bool]] = {}
        for name, sealed in sorted((await self._kept.all()).items()):
            try:
                found[name] = (_loaded(self._seals.open(name, sealed)), self._seals.is_first(sealed))
            except Unsealable:
                found[name] = (None, False)
        return found

    async def keep(self, installation: Installation) -> None:
        """Keep one with a token that it has just got, and have that renewed in time."""
        name, expires_at = name_of(installation), installation.bot_token_expires_at
        if expires_at is not None:
            early_s = min(EARLY_S, (expires_at - self._now_s) // 2)
            installation.set_custom_value(RENEW_AT, expires_at - early_s)
        await self._kept.put(name, self._seals.seal(name, _dumped(installation)))
        if expires_at is not None:
            await self._kept.due(f"rotate:{name}", installation.custom_values[RENEW_AT] * 1000)

    async def remove(self, name: str, code: str = UNINSTALLED) -> bool:
        """Forget one, and have what waits there ended with Slack's word. Returns whether there was one."""
        # the other way round a death in between would leave runs that wait for nobody
        await self._kept.due(f"leave:{name}:{code}", self._store.clock.now_ms())
        return await self._kept.remove(name)

    async def reseal(self) -> int:
        """Seal all with the first key that were sealed with another. Returns how many that were."""
        count = 0
        for name, sealed in (await self._kept.all()).items():
            if not self._seals.is_first(sealed):
                await self._kept.put(name, self._seals.seal(name, self._seals.open(name, sealed)))
                count += 1
        return count

    # what slack_sdk's flow asks for

    async def async_save(self, installation: Installation) -> None:
        """Somebody has installed askgate. Their own token is not kept: there is no use for it."""
        if installation.bot_token_expires_at is not None:
            installation.bot_token_expires_at += self._now_s - int(time.time())
        await self.keep(installation)
        log.info("installation.saved", team=name_of(installation), rotates=_rotates(installation))

    async def async_find_installation(
        self,
        *,
        enterprise_id: str | None,
        team_id: str | None,
        user_id: str | None = None,
        is_enterprise_install: bool | None = False,
    ) -> Installation | None:
        name = enterprise_id if is_enterprise_install else team_id
        return await self.find(name) if name else None

    async def async_find_bot(
        self, *, enterprise_id: str | None, team_id: str | None, is_enterprise_install: bool | None = False
    ) -> Bot | None:
        found = await self.async_find_installation(
            enterprise_id=enterprise_id, team_id=team_id, is_enterprise_install=is_enterprise_install
        )
        return found.to_bot() if found else None

    async def async_delete_installation(
        self, *, enterprise_id: str | None, team_id: str | None, user_id: str | None = None
    ) -> None:
        if name := team_id or enterprise_id:
            await self.remove(name)

    async def async_delete_bot(self, *, enterprise_id: str | None, team_id: str | None) -> None:
        await self.async_delete_installation(enterprise_id=enterprise_id, team_id=team_id)


class Renewal:
    """Renews tokens that expire (Slack: token rotation), each by one process at a time: a refresh token is good
    once."""

    def __init__(
        self, store: Store, installations: Installations, client: AsyncWebClient, client_id: str, secret: str
    ) -> None:
        self._store = store
        self._installations = installations
        self._rotator = AsyncTokenRotator(client_id=client_id, client_secret=secret, client=client)

    async def rotate(self, name: str, _tries: int) -> None:
        """The agenda's handler for `rotate:<name>`. Raises TryAgain when Slack cannot be asked, or another process
        does; what has a new token already, or is not there any more, is left."""
        kept, token = self._store.installations, new_token()
        if not await kept.lease(name, token):
            raise TryAgain
        try:
            found = await self._installations.find(name)
            if found and self.is_due(found):
                await self._renew(found)
        finally:
            await kept.release(name)

    def is_due(self, found: Installation) -> bool:
        renew_at: int | None = found.get_custom_value(RENEW_AT)
        return renew_at is not None and renew_at * 1000 <= self._store.clock.now_ms()

    async def _renew(self, found: Installation) -> None:
        name = name_of(found)
        try:
            bot = await self._rotator.perform_bot_token_rotation(
                bot=found.to_bot(), minutes_before_expiration=ALWAYS_MIN
            )
        except TROUBLES as error:
            cause = error.__cause__ or error.__context__ or error
            said = cause.response.get("error") if isinstance(cause, SlackApiError) else type(error).__name__
            # until it expires the old token is as good as ever
            log.error("installation.not_renewed", team=name, code=said)
            raise TryAgain from None
        if bot is None or bot.bot_token_expires_at is None:
            log.error("installation.not_renewed", team=name, code="no_bot_token")
            raise TryAgain
        lives_s = bot.bot_token_expires_at - int(time.time())
        found.bot_token, found.bot_refresh_token = bot.bot_token, bot.bot_refresh_token
        found.bot_token_expires_at = self._store.clock.now_ms() // 1000 + lives_s
        await self._installations.keep(found)
        log.info("installation.renewed", team=name)


def name_of(installation: Installation) -> str:
    """The id of the workspace, or of the organisation if all of that has it."""
    name = installation.enterprise_id if installation.is_enterprise_install else installation.team_id
    if not name:
        raise ValueError("an installation is in a workspace or an organisation")
    return name


def _rotates(installation: Installation) -> bool:
    return installation.bot_token_expires_at is not None


def _dumped(installation: Installation) -> dict[str, Any]:
    found = {k: v for k, v in installation.to_dict_for_copying().items() if k not in _USERS and v is not None}
    return found | {name: kind(found[name].timestamp()) for name, kind in _TIMES.items() if name in found}


def _loaded(stored: dict[str, Any]) -> Installation:
    return Installation(**stored)

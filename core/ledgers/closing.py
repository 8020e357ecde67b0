"""When a whole ledger is closed: it was copied to another one, or a copy into it has not all come yet."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..errors import IdentityConflict, LedgerBusy, LedgerSealed

SEAL: Final = "seal"
COPY_BEGIN: Final = "copy-begin"
COPY_END: Final = "copy-end"
"""The audit's names for what closes a ledger and opens it; their ``id`` is the other ledger."""


class Closing(NamedTuple):
    """What closes a ledger, if anything does."""

    sealed_for: str | None = None
    """The ledger that this one was copied to."""
    copying_from: str | None = None
    """The ledger whose copy has begun to come and has not ended."""

    def refuse(self, location: str, *, even_sealed: bool = False, even_copying: bool = False) -> None:
        """Say why nothing may change; each kind can be let pass.

        Raises:
            LedgerSealed: names the ledger to use instead, or the copy that must end first.
        """
        if self.sealed_for is not None and not even_sealed:
            raise LedgerSealed(
                f"{location}: this ledger was sealed for {self.sealed_for}; use that one from now on"
            )
        if self.copying_from is not None and not even_copying:
            from shlex import quote  # which few commands need

            raise LedgerSealed(
                f"{location}: the copy of {self.copying_from} to here has not ended, and nothing may change here "
                f"until it has: run fencepost copy --from {quote(self.copying_from)} --to {quote(location)}, which "
                "goes on where it stopped. If none of it has come and none is to come, delete this ledger"
            )

    def require_copy(self, location: str, source: str) -> None:
        """Refuse a row of a copy that is not under way.

        Raises:
            IdentityConflict: another process has ended it.
        """
        if self.copying_from != source:
            raise IdentityConflict(
                f"{location}: the copy of {source} to here is not under way: another process has ended it; run it "
                "again to see that it has"
            )


def live_lease(location: str, id: str) -> LedgerBusy:
    """The error of a seal, and of a copy, while a job is being worked on."""
    return LedgerBusy(
        f"{location}: jobs are running under live leases ({id!r} is one); stop the workers, or wait for the leases to "
        "end"
    )


def holds_something(location: str, name: str) -> IdentityConflict:
    """The error of a copy into a ledger that is in use."""
    return IdentityConflict(f"{location} holds {name!r} already: copy into an empty ledger")

"""What the rules of this room need of an engine: to run a statement of its ``queries.sql`` by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, Any] | tuple[Any, ...]


class Transaction(Protocol):
    """An open transaction of either engine. The statements that are run here give the same columns in both."""

    def rows(self, name: str, parameters: Parameters = ..., /) -> list[Row]:
        """Run the statement of that name; all of its rows."""

    def value(self, name: str, parameters: Parameters = ..., /) -> Any:
        """The first column of the first row; None if there is no row."""

    def change(self, name: str, parameters: Parameters = ..., /) -> int:
        """Run a statement that changes rows; how many it did change."""

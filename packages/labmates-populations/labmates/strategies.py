"""What strategies as code import: actions, descriptions of games, and histories, here for tests of one's own."""

from labmates_populations.engine.kernel.interface import (
    Action,
    ActionHistory,
    BaseStrategy,
    ByActionDescription,
    ByCountDescription,
    C,
    CollectiveRiskDescription,
    CommonPoolDescription,
    CommonPoolState,
    D,
    GameDescription,
    GameState,
    PlayerHistory,
    PublicGoodsDescription,
)

__all__ = [
    "Action",
    "ActionHistory",
    "BaseStrategy",
    "ByActionDescription",
    "ByCountDescription",
    "C",
    "CollectiveRiskDescription",
    "CommonPoolDescription",
    "CommonPoolState",
    "D",
    "GameDescription",
    "GameState",
    "PlayerHistory",
    "PublicGoodsDescription",
]

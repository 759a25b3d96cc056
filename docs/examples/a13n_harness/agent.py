"""The agent: it may ask, and deploy when somebody approves. Replace it by yours: host.py needs `build` alone."""

from __future__ import annotations

import os

from a13n_harness import AgentSpec, ExecutableAgent, HarnessBuilder
from a13n_harness.capabilities import UserInteractionCapability
from pydantic_ai.capabilities import Toolset
from pydantic_ai.toolsets import FunctionToolset

tools: FunctionToolset[object] = FunctionToolset()


@tools.tool_plain(requires_approval=True)
def deploy(target: str) -> str:
    """Deploy the release to a target."""
    return f"deployed to {target}"


def build() -> ExecutableAgent[str]:
    return HarnessBuilder().build(
        AgentSpec(model=os.environ["A13N_MODEL"]),
        output_type=str,
        capabilities=(UserInteractionCapability(), Toolset(tools)),
    )

"""DDP303: reinforcement learning has no data set to divide."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_ENVIRONMENTS = frozenset(
    {"gym", "gymnasium", "pettingzoo", "mlagents_envs", "unityagents", "dm_control", "atari_py", "retro", "ale_py"}
    | {"stable_baselines3", "procgen", "vizdoom", "gym_super_mario_bros", "torchrl", "minigrid", "highway_env"}
)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse a script that plays in an environment."""
    libraries = sorted({name.split(".")[0] for name in script.imported.values()} & _ENVIRONMENTS)
    if not libraries:
        return
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "reset":
            message = f"it learns from a {libraries[0]} environment; every process would play the same game"
            remedy = "distribute the environments instead: one seed and one actor per process"
            yield Finding(RULE.id, "refused", call.lineno, message, remedy)
            return


RULE = Rule(
    id="DDP303",
    title="Reinforcement learning is not converted",
    why="""\
There is no batch of a data set that could be divided: the data come from acting, and acting follows from what was
learnt. Processes that start alike would all collect the same episode (section R).""",
    before="""\
import gymnasium
import torch

env = gymnasium.make("CartPole-v1")
policy = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
state, _ = env.reset()
for _ in range(100):
    action = torch.distributions.Categorical(logits=policy(torch.as_tensor(state))).sample()
    state, reward, *_ = env.step(action.item())
    (-reward * policy(torch.as_tensor(state)).sum()).backward()
    optimizer.step()
""",
    after="",
    check=check,
)

"""What the rules of the plain style say to an engine: torch.distributed, or another one's words for the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """The words of one engine, as source.

    imports: the lines of import that the others need. rank, world_size: expressions. barrier: a statement. all_reduce,
    broadcast: statements that sum a tensor over the processes, or take that of rank 0, under the name of it, `{0}`.
    of_rank_0: statements of a function that returns what rank 0 has as `value`. join: the statement that joins the
    processes, with the source of the backend for `{0}`. leave: the statement that leaves them.
    """

    imports: tuple[str, ...]
    rank: str
    world_size: str
    barrier: str
    all_reduce: str
    broadcast: str
    of_rank_0: tuple[str, ...]
    join: str
    leave: str

    @property
    def is_rank_0(self) -> str:
        """The test for what rank 0 alone does."""
        return f"{self.rank} == 0"

    @property
    def share(self) -> str:
        """The samples of this rank out of a data set, for which `{}` stands: every W-th."""
        return f"range({self.rank}, len({{}}), {self.world_size})"


TORCH = Words(
    imports=("import torch.distributed as dist",),
    rank="dist.get_rank()",
    world_size="dist.get_world_size()",
    barrier="dist.barrier()",
    all_reduce="dist.all_reduce({0})",
    broadcast="dist.broadcast({0}, 0)",
    of_rank_0=("values = [value]", "dist.broadcast_object_list(values)", "return values[0]"),
    join="dist.init_process_group({0})",
    leave="dist.destroy_process_group()",
)

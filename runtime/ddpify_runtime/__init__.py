"""What a converted script imports: torch's words, with the meaning that they have in a single process."""

from .collectives import all_gather as all_gather
from .collectives import all_gather_object as all_gather_object
from .collectives import all_reduce as all_reduce
from .collectives import broadcast_object_list as broadcast_object_list
from .collectives import gather as gather
from .collectives import gather_object as gather_object
from .collectives import print_by_rank as print_by_rank
from .collectives import reduce_scatter as reduce_scatter
from .data_loader import DataLoader as DataLoader
from .parallel import DataParallel as DataParallel
from .parallel import DistributedDataParallel as DistributedDataParallel
from .parallel import replicate as replicate
from .process_group import destroy_process_group as destroy_process_group
from .process_group import get_local_rank as get_local_rank
from .process_group import get_rank as get_rank
from .process_group import get_world_size as get_world_size
from .process_group import init_process_group as init_process_group
from .rank_zero import barrier as barrier
from .rank_zero import broadcast as broadcast
from .rank_zero import rank_zero_first as rank_zero_first
from .rank_zero import rank_zero_only as rank_zero_only
from .rank_zero import rank_zero_path as rank_zero_path
from .rank_zero import rank_zero_value as rank_zero_value
from .sampler import DistributedSampler as DistributedSampler
from .sampler import DistributedSamplerWrapper as DistributedSamplerWrapper
from .zero_redundancy import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

"""A model of which each rank keeps a part: torch's fully_shard (FSDP2) with the contract of one process."""

"""ZeRO: the stage, what it does to memory and communication, buckets, gathering, layout."""

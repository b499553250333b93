"""ZeRO: stages, buckets, ZeRO++, ZenFlow, and the features that depend on the stage (DS4xx)."""

"""DS90x to DS94x: monitors, profiling, checkpoints, data efficiency, autotuning and other sections."""

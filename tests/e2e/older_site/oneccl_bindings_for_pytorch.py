"""Stands for Intel's collectives, which ``cpu_accelerator.py`` of DeepSpeed up to 0.14.0 imports."""

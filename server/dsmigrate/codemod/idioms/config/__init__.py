"""What ds_config.json takes from the script."""

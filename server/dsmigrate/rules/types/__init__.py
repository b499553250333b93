"""Rules about values: wrong types, values outside a range or a closed list, and what DeepSpeed makes of them."""

"""Reading, finding and writing the user's files; nothing here knows of DeepSpeed."""

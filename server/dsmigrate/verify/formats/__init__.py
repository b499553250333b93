"""What a verification has found, in the forms that it is read in."""

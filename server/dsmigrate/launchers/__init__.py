"""Shell scripts, Makefiles, READMEs and the like that start a converted script: found, and changed where need be."""

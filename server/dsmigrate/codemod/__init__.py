"""The codemod: recognise the roles in a DDP script, plan, rewrite, audit, emit."""

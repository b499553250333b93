"""Other spellings of scripts: what a conversion gives must not depend on them."""

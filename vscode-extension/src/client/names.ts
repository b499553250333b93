/** The command that links in hovers call, with a word and the address of a config. */
export const EXPLAIN = 'dsmigrate.explain';

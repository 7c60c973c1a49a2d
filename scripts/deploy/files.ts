/** The repository's configuration, in its folder. */
export const SHARED_FILE = "wrangler.toml";
/** An operator's own values: the same settings, only those that differ. Git ignores it. */
export const OWN_FILE = "wrangler.own.toml";
/** Both in one. Wrangler looks for this name before `wrangler.toml`; git ignores it. */
export const MERGED_FILE = "wrangler.json";

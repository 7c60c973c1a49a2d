export const SHARED_FILE = "wrangler.toml";
/** The operator's own settings that differ from `wrangler.toml`. Git ignores the file. */
export const OWN_FILE = "wrangler.own.toml";
/** The merge of both files. Wrangler prefers it to `wrangler.toml`, and Git ignores it. */
export const MERGED_FILE = "wrangler.json";

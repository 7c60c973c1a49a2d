/** The crons of wrangler.toml. */
export const CRONS = {
  hourly: "0 * * * *",
  watch: "*/3 * * * *",
  /** Continues an hourly sweep that one invocation couldn't finish. */
  round: "* * * * *",
} as const;

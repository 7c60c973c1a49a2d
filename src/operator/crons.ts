/** The crons of wrangler.toml. */
export const CRON_SCHEDULES = {
  hourly: "0 * * * *",
  watch: "*/3 * * * *",
  /** Continues an hourly sweep that one invocation couldn't finish. */
  round: "* * * * *",
} as const;

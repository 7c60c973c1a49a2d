/** The cron schedules in wrangler.toml. */
export const CRON_SCHEDULES = {
  hourly: "0 * * * *",
  watch: "*/3 * * * *",
  /** Continues an incomplete hourly sweep. */
  round: "* * * * *",
} as const;

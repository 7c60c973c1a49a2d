/** The crons of wrangler.toml. */
export const CRONS = {
  hourly: "0 * * * *",
  /** Measures the outboxes, and queries Stripe for payments whose webhooks may not have arrived. */
  watch: "*/3 * * * *",
  /** Continues an hourly sweep that one invocation couldn't finish. */
  round: "* * * * *",
} as const;

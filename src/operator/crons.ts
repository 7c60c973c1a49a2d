/** The crons of wrangler.toml. */
export const CRONS = {
  hourly: "0 * * * *",
  /** Measures the outboxes, and queries Stripe for payments whose webhooks may not have arrived. */
  watch: "*/3 * * * *",
  /** Continues a round that needs more than one invocation. */
  round: "* * * * *",
} as const;

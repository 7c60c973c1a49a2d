/** The crons of wrangler.toml. */
export const CRONS = {
  /** Starts a round over the wallets. */
  hourly: "0 * * * *",
  /** Measures the outboxes, and queries Stripe for payments whose webhooks may not have arrived. */
  watch: "*/3 * * * *",
  /** Continues the round, if one invocation isn't enough. */
  round: "* * * * *",
} as const;

/** The crons of wrangler.toml, by the job that each runs. */
export const CRONS = {
  /** The hourly job, which begins a round over the wallets. */
  hourly: "0 * * * *",
  /** Measures the outboxes and asks Stripe what its messages may have missed. */
  watch: "*/3 * * * *",
  /** Continues the round over the wallets, where one invocation is not enough for it. */
  round: "* * * * *",
} as const;

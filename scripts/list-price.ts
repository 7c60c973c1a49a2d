/** The resources that one completion uses in total. */
export type CompletionUse = {
  readonly cpuMs: number;
  /** Durable Object calls and alarms. */
  readonly objectRequests: number;
  /** Rows in Durable Objects and D1. Deletions, index rows and setAlarm count as writes. */
  readonly rowsWritten: number;
  readonly rowsRead: number;
  readonly logLines: number;
};

/** Seconds that an object is billed per call. */
const OBJECT_SECONDS_PER_CALL = 0.003;

/**
 * Rows that retention deletes from the wallet for each completion. `test/wallet/list-price.test.ts`
 * counts them.
 */
export const ROWS_DELETED = 1;

/**
 * Returns dollars per million completions on Workers Paid, above the included usage. Prices:
 * requests 0.30, CPU 0.02 per ms, object requests 0.15, object seconds 1.60, rows written 1.00,
 * rows read 0.001, log events 0.60 (developers.cloudflare.com: Workers, Durable Objects and D1
 * pricing). wrangler.toml turns off the platform's own log line.
 */
export function dollarsPerMillion(use: CompletionUse): number {
  return (
    0.3 +
    0.02 * use.cpuMs +
    (0.15 + 1.6 * OBJECT_SECONDS_PER_CALL) * use.objectRequests +
    use.rowsWritten +
    0.001 * use.rowsRead +
    0.6 * use.logLines
  );
}

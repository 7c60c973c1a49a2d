/** The metered use of one completion over its life. */
export type Use = {
  readonly cpuMs: number;
  /** Calls of objects, and their alarms. */
  readonly objectRequests: number;
  /** In objects and in D1. A deletion is a write, each index row too, and so is setAlarm. */
  readonly rowsWritten: number;
  readonly rowsRead: number;
  readonly logLines: number;
};

/** How long an object is busy with one call, for the duration price. */
const OBJECT_SECONDS_PER_CALL = 0.003;

/** Rows of a completion that retention deletes from its wallet: the request's. Counted by `test/wallet/list-price.test.ts`. */
export const ROWS_DELETED = 1;

/**
 * Dollars per million completions on Workers Paid beyond what is included: requests 0.30, CPU 0.02 per ms, object
 * requests 0.15, object seconds 1.60, rows written 1.00, rows read 0.001, log events 0.60
 * (developers.cloudflare.com: Workers, Durable Objects and D1 pricing). The platform's own line for each request is
 * off (wrangler.toml).
 */
export function dollarsPerMillion(use: Use): number {
  return (
    0.3 +
    0.02 * use.cpuMs +
    (0.15 + 1.6 * OBJECT_SECONDS_PER_CALL) * use.objectRequests +
    use.rowsWritten +
    0.001 * use.rowsRead +
    0.6 * use.logLines
  );
}

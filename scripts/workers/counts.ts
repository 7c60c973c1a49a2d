const NONE = {
  requests: 0,
  /** Durable Object calls, and the number of them before the provider was called. */
  objectCalls: 0,
  objectCallsBeforeUpstream: 0,
  /** Calls that deliver metrics, which don't belong to a request. */
  objectCallsForMetrics: 0,
  alarms: 0,
  objectRowsWritten: 0,
  objectRowsRead: 0,
  d1Queries: 0,
  d1QueriesBeforeUpstream: 0,
  d1RowsWritten: 0,
  d1RowsRead: 0,
  logLines: 0,
};
export type Counts = typeof NONE;

export function noCounts(): Counts {
  return { ...NONE };
}

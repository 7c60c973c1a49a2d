export type Counts = {
  requests: number;
  /** Durable Object calls, and the number of them before the provider was called. */
  objectCalls: number;
  objectCallsBeforeUpstream: number;
  /** Calls that deliver metrics, which don't belong to a request. */
  objectCallsForMetrics: number;
  alarms: number;
  objectRowsWritten: number;
  objectRowsRead: number;
  d1Queries: number;
  d1QueriesBeforeUpstream: number;
  d1RowsWritten: number;
  d1RowsRead: number;
  logLines: number;
};

export function noCounts(): Counts {
  return {
    requests: 0,
    objectCalls: 0,
    objectCallsBeforeUpstream: 0,
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
}

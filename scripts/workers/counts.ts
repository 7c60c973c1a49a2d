/** The counts since the last reset. */
export type Counts = {
  /** Requests that reached the gateway. */
  requests: number;
  /** Calls on Durable Object stubs, and how many of them came before the upstream was called. */
  objectCalls: number;
  objectCallsBeforeUpstream: number;
  /** Calls that hand counts over at any time after an answer; they belong to no request. */
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

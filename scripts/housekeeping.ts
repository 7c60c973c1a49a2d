/** An organization in use, by what its wallet's publishes carry. */
export type Active = {
  /** Keys that were used since the last publish, and those of them that have a budget. */
  readonly keys: number;
  readonly budgets: number;
  /** End users that spent since the last publish. */
  readonly endUsers: number;
  readonly requestsPerMinute: number;
};

/** A region's database statements and written rows, index rows included. */
type DatabaseWork = { readonly statements: number; readonly rowsWritten: number };

const HOUR_MINUTES = 60;
/** The publish interval of a busy and a quiet wallet: up to this number of requests in between. */
const BUSY_MINUTES = 1.5;
const QUIET_MINUTES = 3;
const QUIET_REQUESTS = 64;

/** Returns the least minutes between two publishes. */
export function publishMinutes({ requestsPerMinute }: Pick<Active, "requestsPerMinute">): number {
  return requestsPerMinute * QUIET_MINUTES <= QUIET_REQUESTS ? QUIET_MINUTES : BUSY_MINUTES;
}

/**
 * One publish: the balance and the day always, the last uses of all keys, spend of budgets and of end users where there
 * are any. Held to a counted run by `test/wallet/housekeeping.test.ts`.
 */
export function publishWork({ keys, budgets, endUsers }: Active): DatabaseWork {
  const lists = [keys, budgets, endUsers].filter((rows) => rows > 0).length;
  return { statements: 2 + lists, rowsWritten: 2 + keys + budgets + endUsers };
}

/** An hour of it: its publishes, and once that the organization is in use. */
export function hourlyWork(active: Active): DatabaseWork {
  const publishes = HOUR_MINUTES / publishMinutes(active);
  const { statements, rowsWritten } = publishWork(active);
  return { statements: 1 + publishes * statements, rowsWritten: 1 + publishes * rowsWritten };
}

/** Returns the statements and rows per second of these organizations. */
export function workPerSecond(organizations: number, active: Active): DatabaseWork {
  const { statements, rowsWritten } = hourlyWork(active);
  const each = organizations / 3600;
  return { statements: statements * each, rowsWritten: rowsWritten * each };
}

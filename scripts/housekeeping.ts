/** The activity of an organization, as far as it changes what its wallet publishes. */
export type Active = {
  /** Keys used since the last publish. */
  readonly keys: number;
  readonly budgets: number;
  /** End users with spend since the last publish. */
  readonly endUsers: number;
  readonly requestsPerMinute: number;
};

/** A region's database statements and written rows. Rows include those of indexes. */
type DatabaseWork = { readonly statements: number; readonly rowsWritten: number };

const HOUR_MINUTES = 60;
/**
 * Minimum minutes between two publishes of a busy and of a quiet wallet. A quiet wallet has at most
 * `QUIET_REQUESTS` in between.
 */
const BUSY_MINUTES = 1.5;
const QUIET_MINUTES = 3;
const QUIET_REQUESTS = 64;

/** Returns the minimum minutes between two publishes. */
export function publishMinutes({ requestsPerMinute }: Pick<Active, "requestsPerMinute">): number {
  return requestsPerMinute * QUIET_MINUTES <= QUIET_REQUESTS ? QUIET_MINUTES : BUSY_MINUTES;
}

/**
 * Returns the work of one publish. Always writes the balance and the day. Adds the last use of keys
 * and the spend of budgets and end users, if any. `test/wallet/housekeeping.test.ts` compares it
 * with a counted run.
 */
export function publishWork({ keys, budgets, endUsers }: Active): DatabaseWork {
  const lists = [keys, budgets, endUsers].filter((rows) => rows > 0).length;
  return { statements: 2 + lists, rowsWritten: 2 + keys + budgets + endUsers };
}

/** Returns the work of an hour: the publishes, and one record that the organization is active. */
export function hourlyWork(active: Active): DatabaseWork {
  const publishes = HOUR_MINUTES / publishMinutes(active);
  const { statements, rowsWritten } = publishWork(active);
  return { statements: 1 + publishes * statements, rowsWritten: 1 + publishes * rowsWritten };
}

export function workPerSecond(organizations: number, active: Active): DatabaseWork {
  const { statements, rowsWritten } = hourlyWork(active);
  const each = organizations / 3600;
  return { statements: statements * each, rowsWritten: rowsWritten * each };
}

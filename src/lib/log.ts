/** Named fields of a log line: plain values, never a key, a prompt or an answer. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** One structured line that operators route by `alert`: something needs a person. */
export function logAlert(alert: string, fields: LogFields): void {
  // oxlint-disable-next-line no-console -- the platform collects structured lines from the console
  console.error(JSON.stringify({ event: "alert", alert, ...fields }));
}

/** One structured line about something that was handled. */
export function logWarning(event: string, fields: LogFields): void {
  // oxlint-disable-next-line no-console -- the platform collects structured lines from the console
  console.warn(JSON.stringify({ event, ...fields }));
}

/** What an unknown thrown value says, for a log line; at most 200 characters. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}

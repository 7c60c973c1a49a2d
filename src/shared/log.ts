type LogValue =
  | string
  | number
  | boolean
  | null
  | readonly LogValue[]
  | { readonly [name: string]: LogValue };

/** The fields of a log line: never a key, prompt or output. */
export type LogFields = Readonly<Record<string, LogValue>>;

/** Logs an event. */
export function logEvent(event: string, fields: LogFields): void {
  write("log", { event, ...fields });
}

/** Logs a handled problem. */
export function logWarning(event: string, fields: LogFields): void {
  write("warn", { event, ...fields });
}

/** Logs an alert that needs a person. Operators route by `alert`. */
export function logAlert(alert: string, fields: LogFields): void {
  write("error", { event: "alert", alert, ...fields });
}

/** Returns the message of a thrown value, at most 200 characters. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}

/** Logs a bug's stack frames without its message, which may quote client data. */
export function logException(error: unknown, fields: LogFields): void {
  const { name, stack } = error instanceof Error ? error : new Error("thrown");
  const frames = (stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
  logEvent("exception", {
    ...fields,
    name: error instanceof Error ? name : `thrown ${typeof error}`,
    stack: frames.map((frame) => frame.trim()),
  });
}

function write(level: "log" | "warn" | "error", line: LogFields): void {
  // oxlint-disable-next-line no-console -- the platform collects structured lines from the console
  console[level](JSON.stringify(line));
}

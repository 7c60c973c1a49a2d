type LogValue =
  | string
  | number
  | boolean
  | null
  | readonly LogValue[]
  | { readonly [name: string]: LogValue };

export type LogFields = Readonly<Record<string, LogValue>>;

export function logEvent(event: string, fields: LogFields): void {
  write("log", { event, ...fields });
}

export function logWarning(event: string, fields: LogFields): void {
  write("warn", { event, ...fields });
}

/** Logs an alert that a person must handle. */
export function logAlert(alert: string, fields: LogFields): void {
  write("error", { event: "alert", alert, ...fields });
}

export function errorMessageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}

/** Logs an exception without its message, which could contain prompts. */
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
  // oxlint-disable-next-line no-console -- the platform collects JSON lines from the console
  console[level](JSON.stringify(line));
}

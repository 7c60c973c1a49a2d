type LogValue =
  | string
  | number
  | boolean
  | null
  | readonly LogValue[]
  | { readonly [name: string]: LogValue };

/** Named fields of a log line: plain values, never a key, a prompt or an answer. */
export type LogFields = Readonly<Record<string, LogValue>>;

/** One structured line about something that happened. */
export function logEvent(event: string, fields: LogFields): void {
  write("log", { event, ...fields });
}

/** One structured line about something that was handled. */
export function logWarning(event: string, fields: LogFields): void {
  write("warn", { event, ...fields });
}

/** One structured line that operators route by `alert`: something needs a person. */
export function logAlert(alert: string, fields: LogFields): void {
  write("error", { event: "alert", alert, ...fields });
}

/** What an unknown thrown value says, for a log line; at most 200 characters. */
export function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
}

/** A bug: the frames of its stack, not its message, which may quote what the client sent. */
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

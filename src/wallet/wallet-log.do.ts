/** One structured log line of the wallet, for operators to route by `event`; never a key or a prompt. */
export function logLine(
  level: "warn" | "error",
  event: string,
  fields: Readonly<Record<string, string | number | null>>,
): void {
  // oxlint-disable-next-line no-console -- structured lines on the console are the platform's log
  console[level](JSON.stringify({ level, event, ...fields }));
}

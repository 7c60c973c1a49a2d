const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;
const ZERO = /^0+$/;

/**
 * Returns `<trace ID>-<parent ID>` of a `traceparent` header (W3C Trace Context), or undefined if
 * the header is invalid.
 */
export function parseTraceparent(header: string | undefined): string | undefined {
  const [, version, trace, parent, more] = TRACEPARENT.exec(header ?? "") ?? [];
  if (trace === undefined || parent === undefined || version === "ff") return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return ZERO.test(trace) || ZERO.test(parent) ? undefined : `${trace}-${parent}`;
}

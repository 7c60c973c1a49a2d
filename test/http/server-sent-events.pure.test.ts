import { afterEach, expect, it, vi } from "vitest";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";

afterEach(() => vi.restoreAllMocks());

/** Returns the number of characters read to parse a text of one network chunk, and its events. */
function searched(text: string) {
  const bytes = new TextEncoder().encode(text);
  const spy = vi.spyOn(String.prototype, "indexOf");
  const events = new SseDecoder().push(bytes).length;
  const { contexts, calls, results } = spy.mock;
  const characters = calls.reduce((sum, [, from = 0], at) => {
    const found = Number(results[at]?.value);
    return sum + (found === -1 ? String(contexts[at]).length : found) - from;
  }, 0);
  return { events, characters };
}

it.each([
  ["\\n", "\n"],
  ["\\r", "\r"],
  ["\\r\\n", "\r\n"],
])(
  "the event stream parser reads each character at most five times for lines that end in %s",
  (_, end) => {
    const text = `data: x${end}${end}`.repeat(5000);
    const { events, characters } = searched(text);
    expect(events).toBe(5000);
    expect(characters).toBeLessThan(text.length * 5);
  },
);

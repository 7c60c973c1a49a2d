import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** The value of `work`, or a throw after `limitMs`. The work itself goes on: what it does must be repeatable. */
export function within<T>(
  work: Promise<T>,
  limitMs: number,
  after: After = afterTimeout,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = after(limitMs, () => {
      reject(new Error(`no answer within ${limitMs} ms`));
    });
    const last =
      <V>(act: (value: V) => void) =>
      (value: V): void => {
        cancel();
        act(value);
      };
    work.then(last(resolve), last(reject));
  });
}

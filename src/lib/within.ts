import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** The value of `work`, or a throw after `limitMs`. The work itself goes on: what it does must be repeatable. */
export function within<T>(
  work: Promise<T>,
  limitMs: number,
  after: After = afterTimeout,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false; // then nothing is taken back: who answers so late may do it for somebody else
    const cancel = after(limitMs, () => {
      isLate = true;
      reject(new Error(`no answer within ${limitMs} ms`));
    });
    const last =
      <V>(act: (value: V) => void) =>
      (value: V): void => {
        if (isLate) return;
        cancel();
        act(value);
      };
    work.then(last(resolve), last(reject));
  });
}

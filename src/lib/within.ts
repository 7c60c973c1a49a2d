import { afterTimeout } from "./timers.ts";
import type { After } from "./timers.ts";

/** The value of `work`, or a throw after `limitMs`. The work itself goes on: what it does must be repeatable. */
export async function within<T>(
  work: Promise<T>,
  limitMs: number,
  after: After = afterTimeout,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = after(limitMs, () => {
    late.reject(new Error(`no answer within ${limitMs} ms`));
  });
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    cancel();
  }
}

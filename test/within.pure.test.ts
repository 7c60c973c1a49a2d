import { expect, it } from "vitest";
import { withTimeout } from "../src/shared/timers.ts";

it("the function within returns a task's value or error, and throws if the task takes too long", async () => {
  expect(await withTimeout(Promise.resolve(5), 1000)).toBe(5);
  await expect(withTimeout(Promise.reject(new Error("broken")), 1000)).rejects.toThrow("broken");
  const passed = withTimeout(new Promise(() => undefined), 1, (_ms, run) => {
    queueMicrotask(run);
    return () => undefined;
  });
  await expect(passed).rejects.toThrow("no answer within 1 ms");
});

it("the function within ignores a result that arrives after the time limit", async () => {
  const work = Promise.withResolvers<number>();
  let takenBack = 0;
  const limits: (() => void)[] = [];
  const late = withTimeout(work.promise, 1000, (_ms, run) => {
    limits.push(run);
    return () => void takenBack++;
  });
  for (const pass of limits) pass();
  await expect(late).rejects.toThrow("no answer within 1000 ms");
  work.resolve(5);
  await work.promise;
  await Promise.resolve();
  expect(takenBack).toBe(0);
});

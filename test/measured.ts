import { TestRunner } from "vitest";

/** The figures that a test measured, by name. */
type Measured = Readonly<Record<string, number>>;

declare module "vitest" {
  interface TaskMeta {
    measured?: Measured;
  }
}

/**
 * Records a test's figures in the report, from which `npm run figures` reads them. A repeated name
 * overwrites the earlier figure. No test depends on them.
 */
export function recordMeasured(values: Measured): void {
  const test = TestRunner.getCurrentTest();
  if (test === undefined) return;
  test.meta.measured = { ...test.meta.measured, ...values };
}

/** Adds to the figures of the running test. */
export function addMeasured(values: Measured): void {
  const before = TestRunner.getCurrentTest()?.meta.measured ?? {};
  recordMeasured(
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, (before[name] ?? 0) + value]),
    ),
  );
}

import { TestRunner } from "vitest";

/** What a test measured: plain numbers by name. */
type Measured = Readonly<Record<string, number>>;

declare module "vitest" {
  interface TaskMeta {
    measured?: Measured;
  }
}

/**
 * Keeps what the running test has measured in the report of the run, where `npm run figures` reads it;
 * a name that comes again is overwritten. No test depends on it.
 */
export function measured(values: Measured): void {
  const test = TestRunner.getCurrentTest();
  if (test === undefined) return;
  test.meta.measured = { ...test.meta.measured, ...values };
}

/** Adds to what the running test has counted so far. */
export function counted(values: Measured): void {
  const before = TestRunner.getCurrentTest()?.meta.measured ?? {};
  measured(
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, (before[name] ?? 0) + value]),
    ),
  );
}

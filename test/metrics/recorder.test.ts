import { expect, it, vi } from "vitest";
import { MetricRecorder } from "../../src/events/metrics/tally.ts";

it("the metrics recorder transfers new counts only after the previous transfer ends", async () => {
  const recorder = new MetricRecorder(0);
  const begun: Promise<unknown>[] = [];
  const added: object[] = [];
  const count = async (): Promise<void> => {
    recorder.tally.count("shed", { reason: "isolate" });
    recorder.scheduleFlush(
      (work) => begun.push(work),
      async (series) => void added.push(series),
    );
    await Promise.all(begun);
  };
  await count();
  await count();
  const once = { 'turnpike_shed_total{reason="isolate"}': 1 };
  expect(added).toEqual([once, once]);
});

it("the metrics recorder starts another transfer 30 s after a transfer that never ends", () => {
  const recorder = new MetricRecorder(5000);
  vi.spyOn(scheduler, "wait").mockImplementation(() => new Promise<void>(() => undefined));
  const begunMs = Date.now();
  const clock = vi.spyOn(Date, "now").mockReturnValue(begunMs);
  const begun: unknown[] = [];
  const handOver = (): void =>
    recorder.scheduleFlush(
      (work) => begun.push(work),
      () => Promise.resolve(undefined),
    );
  recorder.tally.count("shed", { reason: "isolate" });
  handOver();
  clock.mockReturnValue(begunMs + 35_000);
  handOver();
  expect(begun).toHaveLength(1);
  clock.mockReturnValue(begunMs + 35_001);
  handOver();
  expect(begun).toHaveLength(2);
});

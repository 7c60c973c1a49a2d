import { expect, it, vi } from "vitest";
import { MetricRecorder } from "../../src/events/metrics/tally.ts";

it("the metrics recorder transfers new counts only after the previous transfer ends", async () => {
  const recorder = new MetricRecorder(0);
  const transfers: Promise<unknown>[] = [];
  const added: object[] = [];
  const count = async (): Promise<void> => {
    recorder.tally.count("shed", { reason: "isolate" });
    recorder.scheduleFlush(
      (work) => transfers.push(work),
      async (series) => void added.push(series),
    );
    await Promise.all(transfers);
  };
  await count();
  await count();
  const once = { 'turnpike_shed_total{reason="isolate"}': 1 };
  expect(added).toEqual([once, once]);
});

it("the metrics recorder starts another transfer 30 s after a transfer that never ends", () => {
  const recorder = new MetricRecorder(5000);
  vi.spyOn(scheduler, "wait").mockImplementation(() => new Promise<void>(() => undefined));
  const startMs = Date.now();
  const clock = vi.spyOn(Date, "now").mockReturnValue(startMs);
  const transfers: unknown[] = [];
  const handOver = (): void =>
    recorder.scheduleFlush(
      (work) => transfers.push(work),
      () => Promise.resolve(undefined),
    );
  recorder.tally.count("shed", { reason: "isolate" });
  handOver();
  clock.mockReturnValue(startMs + 35_000);
  handOver();
  expect(transfers).toHaveLength(1);
  clock.mockReturnValue(startMs + 35_001);
  handOver();
  expect(transfers).toHaveLength(2);
});

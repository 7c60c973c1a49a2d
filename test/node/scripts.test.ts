import { existsSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { figures, mark, table } from "../../scripts/bench-report.ts";
import type { Measured } from "../../scripts/bench-report.ts";
import { noCounts } from "../../scripts/workers/counts.ts";
import { startProgram } from "./support/program.ts";

const PRINT_AND_FAIL = "process.stdout.write(process.env.TMPDIR); process.exit(7)";

it("npm start names a taken port and the variable that moves it, and starts nothing", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const state = path.join(tmpdir(), `never-made-${port}`);
  const dev = startProgram(["scripts/dev.ts"], { US_PORT: String(port), DEV_DIR: state });
  expect(await dev.ended).toBe(1);
  expect(dev.output()).toContain(`Port ${port} (US) is taken`);
  expect(dev.output()).toContain("US_PORT=");
  expect(existsSync(state)).toBe(false);
  await new Promise((resolve) => server.close(resolve));
});

it("npm start refuses a port that is none", async () => {
  const bad = startProgram(["scripts/dev.ts"], { EU_PORT: "8787x" });
  expect(await bad.ended).toBe(1);
  expect(bad.output()).toContain('EU_PORT must be a port from 1 to 65535, not "8787x"');
});

it("a command runs with a TMPDIR of its own, which is gone afterwards, and its exit code is kept", async () => {
  const run = startProgram(["scripts/on-tmpfs.ts", process.execPath, "-e", PRINT_AND_FAIL]);
  expect(await run.ended).toBe(7);
  expect(path.basename(run.output())).toMatch(/^turnpike-/);
  expect(existsSync(run.output())).toBe(false);
});

it("the bench pairs its rounds, counts per completion and marks what is over budget", () => {
  const sample = { firstByteMs: 1, totalMs: 2 };
  const samples = { json: [sample], stream: [sample] };
  const measured: Measured = {
    // Ratios 2, 3 and 10: the median of ratios is 3, the ratio of medians would be 4.
    rounds: {
      json: [
        { floorUs: 100, turnpikeUs: 200 },
        { floorUs: 100, turnpikeUs: 300 },
        { floorUs: 50, turnpikeUs: 500 },
      ],
      stream: [{ floorUs: 1000, turnpikeUs: 3600 }],
    },
    latencies: { direct: samples, floor: samples, turnpike: samples },
    counted: {
      completions: 100,
      counts: {
        ...noCounts(),
        objectCalls: 300,
        objectCallsBeforeUpstream: 200,
        objectRowsWritten: 300,
      },
      forged: 0,
    },
  };
  const rows = figures(measured);
  const named = (name: string) => rows.find((row) => row.name === name);
  expect(named("CPU per JSON, ratio")?.value).toBe(3);
  expect(named("object calls after it")?.value).toBe(1);
  // 0.30 + 0.02 x 0.3 ms + 3 calls x (0.15 + 1.60 x 3 ms) + 3 rows + 5 % of one log event at 0.60
  expect(named("list price per million completions")?.value).toBeCloseTo(3.8004, 6);
  expect(rows.filter((row) => mark(row) === "OVER").map((row) => row.name)).toEqual([
    "CPU per stream, ratio",
  ]);
  expect(table(rows)).toMatch(/CPU per stream, ratio +3\.60 x +3\.5 +2\.7 +OVER/);
});

import { createServer } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { isPortTaken } from "../../scripts/ports.ts";
import { workerdPid } from "../../scripts/workerd.ts";
import { killRegion } from "../../scripts/kill-region.ts";
import { rawRequest } from "./support/raw-request.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

it("a killed region comes back on its port as another process, the other one stays", async () => {
  const { eu, us } = regions;
  const before = [workerdPid(eu.port), workerdPid(us.port)];
  await killRegion(eu);
  expect(workerdPid(eu.port)).not.toBe(before[0]);
  expect(workerdPid(us.port)).toBe(before[1]);
  const answers = await Promise.all([eu, us].map((region) => fetch(`${region.url}healthz`)));
  expect(answers.every((answer) => answer.status < 500)).toBe(true);
});

it("D1 keeps what was written before a kill", async () => {
  const { eu } = regions;
  const database = () => eu.miniflare.getD1Database("DB", "turnpike-eu");
  await (
    await database()
  )
    .prepare("INSERT INTO balances VALUES ('support-test', 'e', 1, 5, 0)")
    .run();
  await killRegion(eu);
  const row = await (
    await database()
  )
    .prepare("SELECT credits_micro FROM balances WHERE org_id = 'support-test'")
    .first();
  expect(row).toEqual({ credits_micro: 5 });
});

it("a raw request reads at least the bytes asked for and ends in a reset", async () => {
  const resets: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", (error: NodeJS.ErrnoException) => resets.push(error.code ?? ""));
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  expect(await isPortTaken(port)).toBe(true);
  const answer = await rawRequest({ url: `http://127.0.0.1:${port}/v1`, body: "{}" }, 12);
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200/);
  await new Promise((resolve) => server.close(resolve));
  expect(resets).toEqual(["ECONNRESET"]);
});

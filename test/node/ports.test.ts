import { createServer } from "node:net";
import { expect, it } from "vitest";
import { freePort, isPortTaken } from "../../scripts/ports.ts";

it("a free port is given once, and lies below those that outgoing connections take", async () => {
  const ports: number[] = [];
  for (let i = 0; i < 2000; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other, as a test asks
    ports.push(await freePort());
  }
  expect(new Set(ports).size).toBe(2000);
  expect(Math.min(...ports)).toBeGreaterThan(1024);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});

it("a port that somebody listens on is taken until they stop", async () => {
  const port = await freePort();
  expect(await isPortTaken(port)).toBe(false);
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(port, "127.0.0.1", resolve);
  });
  expect(await isPortTaken(port)).toBe(true);
  await new Promise((resolve) => {
    server.close(resolve);
  });
  expect(await isPortTaken(port)).toBe(false);
});

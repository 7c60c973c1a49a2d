import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { bindingsWith, send } from "./client.ts";

let lines: string[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
});
afterEach(() => {
  vi.restoreAllMocks();
});

const logged = (): readonly unknown[] =>
  lines
    .map((line) => JSON.parse(line) as { event: string; status: number })
    .filter(({ event }) => event === "request")
    .map(({ status }) => status);

it("by default has a line for what was refused or failed, none for what succeeded", async () => {
  for (const bindings of [
    bindingsWith({ LOG_REQUESTS: undefined }),
    bindingsWith({ LOG_REQUESTS: "failures" }),
  ]) {
    lines = [];
    await send("/healthz", { bindings });
    await send("/v1/models", { bindings });
    expect(logged()).toEqual([401]);
  }
});

it("has a line for every request where LOG_REQUESTS is all", async () => {
  const bindings = bindingsWith({ LOG_REQUESTS: "all" });
  await send("/healthz", { bindings });
  await send("/v1/models", { bindings });
  expect(logged()).toEqual([200, 401]);
});

import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { CRON_SCHEDULES } from "../../src/operator/crons.ts";
import { runCron, runHourlyJobs } from "../../src/operator/scheduled.ts";
import { ADMIN_TOKEN, bindingsWith, chat, errorOf, openAccount, send } from "./client.ts";
import { separateIsolate } from "./metrics-client.ts";

function rejectUnavailable(): Promise<never> {
  return Promise.reject(Object.assign(new Error("gone"), { retryable: true }));
}

let key: string;
beforeEach(async () => {
  ({ key } = await openAccount());
});

const HELLO = { model: "sandbox/echo", messages: [{ role: "user", content: "one two three" }] };

describe("GET /admin/v1/metrics", () => {
  it("returns requests by route and status, tokens and cost by model, and duration histograms", async () => {
    const { ask, metrics } = separateIsolate();
    await ask("/v1/chat/completions", key, HELLO);
    const streamed = await ask("/v1/chat/completions", key, { ...HELLO, stream: true });
    expect(await streamed.text()).toContain("[DONE]");
    await ask("/v1/chat/completions", key, { ...HELLO, model: "nobody" });
    await ask("/v1/embeddings", key, { model: "sandbox/embed", input: "a text" });
    const text = await metrics();
    expect(text).toContain('turnpike_requests_total{route="/v1/chat/completions",status="200"} 2');
    expect(text).toContain('turnpike_requests_total{route="/v1/chat/completions",status="404"} 1');
    expect(text).toContain('turnpike_requests_total{route="/v1/embeddings",status="200"} 1');
    for (const stream of ["true", "false"]) {
      const labels = `kind="chat",stream="${stream}"`;
      expect(text).toContain(`turnpike_first_byte_seconds_count{${labels}} 1`);
      expect(text).toContain(`turnpike_paid_seconds_count{${labels}} 1`);
    }
    expect(text).toMatch(/turnpike_tokens_total\{model="sandbox\/echo",type="output"\} [1-9]/);
    expect(text).toMatch(/turnpike_cost_micro_total\{model="sandbox\/embed",provider="sandbox"\} /);
  });

  it("counts estimated charges, and requests whose cost the operator absorbs", async () => {
    const { ask, metrics } = separateIsolate();
    await ask("/v1/chat/completions", key, { ...HELLO, model: "sandbox/status-500" });
    await ask("/v1/chat/completions", key, { ...HELLO, model: "sandbox/no-usage" });
    const text = await metrics();
    expect(text).toContain('turnpike_absorbed_total{reason="upstream_error"} 1');
    expect(text).toContain('turnpike_estimated_total{provider="sandbox"} 1');
  });

  it("counts forged keys without an extra call to the metrics object", async () => {
    const { ask, metrics, batches } = separateIsolate();
    for (let i = 0; i < 5; i++) {
      expect((await ask("/v1/models", `svc_sk_eu_live_${"x".repeat(40)}`)).status).toBe(401);
    }
    expect(batches()).toBe(0);
    await ask("/v1/models", key);
    expect(batches()).toBe(1);
    expect(await metrics()).toMatch(/turnpike_requests_total\{route="[^"]*",status="401"\} 5/);
  });

  it("includes the last hourly sweep's age and results: holds, wallets, outboxes and sizes", async () => {
    await chat(key);
    await runHourlyJobs(env);
    await runCron(CRON_SCHEDULES.watch, env);
    const response = await send("/admin/v1/metrics", { key: ADMIN_TOKEN });
    const text = await response.text();
    // Other tests can have left holds and messages, so only the presence of each figure is checked.
    for (const gauge of [
      "turnpike_holds_open",
      "turnpike_hold_oldest_seconds",
      "turnpike_wallets_unpublished",
      "turnpike_wallets_in_conflict",
      'turnpike_outbox_messages{receiver="own",state="waiting"}',
      'turnpike_outbox_messages{receiver="us/revocations",state="dead"}',
      'turnpike_outbox_oldest_seconds{receiver="us"}',
    ]) {
      expect(text).toContain(`\n${gauge} `);
    }
    expect(text).toMatch(/^turnpike_wallet_bytes_max [1-9]\d*$/m);
    expect(text).toMatch(/^turnpike_book_bytes [1-9]\d*$/m);
    for (const job of ["depths", "outboxes", "payments_sweep"]) {
      expect(text).toMatch(new RegExp(`^turnpike_${job}_age_seconds \\d+(?:\\.\\d+)?$`, "m"));
    }
  });

  it("returns metrics without keys, prompts, output or IDs", async () => {
    const { ask, metrics } = separateIsolate();
    const { key: mine, keyId, orgId: own } = await openAccount();
    const secret = "the-prompt-canary";
    await ask("/v1/chat/completions", mine, {
      ...HELLO,
      user: "end-user-canary",
      messages: [{ role: "user", content: secret }],
    });
    await ask(`/v1/users/${secret}`, mine);
    const text = await metrics();
    for (const word of [secret, "end-user-canary", mine, keyId, own]) {
      expect(text).not.toContain(word);
    }
  });
});

it("GET /admin/v1/metrics returns 503 if the region's metrics can't be read", async () => {
  const bindings = bindingsWith({
    REGION_METRICS: { getByName: () => ({ read: rejectUnavailable }) },
  });
  const response = await send("/admin/v1/metrics", { key: ADMIN_TOKEN, bindings });
  expect(await errorOf(response, 503)).toMatchObject({ code: "storage_unavailable" });
});

it("the region's metrics keep their counts after an eviction of the metrics object", async () => {
  const stub = env.REGION_METRICS.getByName("region-kept");
  await stub.add({ turnpike_requests_total: 2 });
  await stub.add({ turnpike_requests_total: 3 });
  expect((await stub.read()).counters).toEqual({ turnpike_requests_total: 5 });
});
